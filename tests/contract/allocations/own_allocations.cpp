#include "own_allocations.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <link.h>
#include <mutex>
#include <new>
#include <unordered_set>

namespace maskwise::contract::own_allocations {
namespace {

struct range {
    std::uintptr_t begin = 0, end = 0;
    bool holds(const void* address) const {
        const auto value = reinterpret_cast<std::uintptr_t>(address);
        return value >= begin && value < end;
    }
};

struct libraries {
    range plugin, cxx, program;
};

range range_of(const dl_phdr_info& info) {
    range bounds{~std::uintptr_t{0}, 0};
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const auto& segment = info.dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        bounds.begin = std::min<std::uintptr_t>(bounds.begin, info.dlpi_addr + segment.p_vaddr);
        bounds.end = std::max<std::uintptr_t>(bounds.end,
                                              info.dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
    return bounds;
}

int note_library(dl_phdr_info* info, std::size_t, void* raw) {
    auto& ranges = *static_cast<libraries*>(raw);
    const range bounds = range_of(*info);
    if (bounds.holds(reinterpret_cast<const void*>(&note_library))) ranges.program = bounds;
    if (std::strstr(info->dlpi_name, "libmaskwise_onednn") != nullptr) ranges.plugin = bounds;
    if (std::strstr(info->dlpi_name, "libstdc++") != nullptr) ranges.cxx = bounds;
    return 0;
}

libraries find_libraries() {
    libraries ranges;
    dl_iterate_phdr(note_library, &ranges);
    return ranges;
}

// Uses malloc, because operator new inserts into `blocks`.
template <typename T>
struct plain_memory {
    using value_type = T;
    plain_memory() = default;
    template <typename Other>
    plain_memory(const plain_memory<Other>&) {}
    T* allocate(std::size_t count) { return static_cast<T*>(std::malloc(count * sizeof(T))); }
    void deallocate(T* block, std::size_t) { std::free(block); }
    bool operator==(const plain_memory&) const = default;
};

std::atomic<bool> watching{false};
std::mutex mutex; // guards `blocks`, until_failure, fails_onwards and has_failed
libraries loaded;
// Maskwise's live blocks. Never destroyed, because destructors of static objects call operator
// delete, which uses the set.
auto& blocks =
    *new std::unordered_set<void*, std::hash<void*>, std::equal_to<>, plain_memory<void*>>;
std::int64_t until_failure = -1; // -1: no allocation fails
bool fails_onwards = false;
bool has_failed = false;
thread_local bool inside = false;

// Whether the first caller outside this program and the C++ library is the plugin. Walks the stack
// only if `caller` is in the program or the C++ library: a walk takes microseconds, and oneDNN 3.2
// allocates tens of thousands of times per graph.
bool is_own_call(const void* caller) {
    if (loaded.plugin.holds(caller)) return true;
    if (!loaded.program.holds(caller) && !loaded.cxx.holds(caller)) return false;
    std::array<void*, 24> frames;
    const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
    auto frame_of = [&](int i) { return frames[static_cast<std::size_t>(i)]; };
    int i = 0;
    while (i < count && !loaded.program.holds(frame_of(i))) ++i; // skips a sanitizer's frames
    for (; i < count; ++i) {
        const void* frame = frame_of(i);
        if (loaded.plugin.holds(frame)) return true;
        if (!loaded.program.holds(frame) && !loaded.cxx.holds(frame)) return false;
    }
    return false;
}

bool must_fail() {
    if (until_failure < 0) return false;
    if (until_failure > 0) {
        --until_failure;
        return false;
    }
    if (!fails_onwards) until_failure = -1;
    return has_failed = true;
}

void* make(std::size_t bytes, std::size_t alignment) {
    void* block =
        alignment <= alignof(std::max_align_t)
            ? std::malloc(bytes)
            : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (block == nullptr) throw std::bad_alloc();
    return block;
}

void watch() {
    void* frames[1];
    backtrace(frames, 1); // loads the unwinder before allocations are watched
    loaded = find_libraries();
    watching = true;
}

} // namespace

void* allocate(std::size_t bytes, std::size_t alignment, const void* caller) {
    if (!watching || inside) return make(bytes, alignment);
    inside = true;
    const bool is_counted = is_own_call(caller);
    inside = false;
    if (!is_counted) return make(bytes, alignment);
    const std::lock_guard lock(mutex);
    if (must_fail()) throw std::bad_alloc();
    void* block = make(bytes, alignment);
    blocks.insert(block);
    return block;
}

void release(void* block) noexcept {
    if (block != nullptr && watching) {
        const std::lock_guard lock(mutex);
        blocks.erase(block);
    }
    std::free(block);
}

void fail(std::int64_t nth, bool onwards) {
    if (!watching) watch();
    const std::lock_guard lock(mutex);
    until_failure = nth;
    fails_onwards = onwards;
    has_failed = false;
}

bool stop() {
    const std::lock_guard lock(mutex);
    until_failure = -1;
    return has_failed;
}

std::int64_t living() {
    if (!watching) watch();
    const std::lock_guard lock(mutex);
    return static_cast<std::int64_t>(blocks.size());
}

} // namespace maskwise::contract::own_allocations

namespace counted = maskwise::contract::own_allocations;

void* operator new(std::size_t bytes) {
    return counted::allocate(bytes, 1, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return counted::allocate(bytes, static_cast<std::size_t>(alignment),
                             __builtin_return_address(0));
}
void operator delete(void* block) noexcept {
    counted::release(block);
}
void operator delete(void* block, std::size_t) noexcept {
    counted::release(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
    counted::release(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    counted::release(block);
}
