#include "touched_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <new>

namespace maskwise::guard {

struct watched_buffer::state {
    std::byte* data = nullptr;
    std::size_t pages = 0;
    std::unique_ptr<std::atomic<bool>[]> touched;
};

namespace {

// Read by the signal handler, so plain slots. Watched buffers live shorter than the threads that
// touch them.
struct slot {
    std::atomic<std::byte*> begin{nullptr};
    std::size_t bytes = 0;
    std::atomic<bool>* touched = nullptr;
};
std::array<slot, 8> slots;
struct sigaction previous {};

// A constant would be read before it is set, by constants of other files.
std::size_t page() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

void on_fault(int number, siginfo_t* info, void* context) {
    auto* const at = static_cast<std::byte*>(info->si_addr);
    for (const slot& s : slots) {
        std::byte* const begin = s.begin.load();
        if (!begin || at < begin || at >= begin + s.bytes) continue;
        const std::size_t index = static_cast<std::size_t>(at - begin) / page();
        s.touched[index].store(true);
        mprotect(begin + index * page(), page(), PROT_READ | PROT_WRITE);
        return;
    }
    // A real fault: whoever handled it before handles it when the instruction runs again.
    sigaction(number, &previous, nullptr);
    (void)context;
}

void install_handler() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &previous);
}

} // namespace

std::size_t watched_buffer::page_bytes() {
    return page();
}

watched_buffer::watched_buffer(std::size_t bytes) : state_(std::make_unique<state>()) {
    static const bool installed = (install_handler(), true);
    (void)installed;
    state_->pages = (bytes + page() - 1) / page();
    state_->touched = std::make_unique<std::atomic<bool>[]>(state_->pages);
    void* at = mmap(nullptr, state_->pages * page(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    state_->data = static_cast<std::byte*>(at);
}

watched_buffer::~watched_buffer() {
    end();
    munmap(state_->data, state_->pages * page());
}

std::byte* watched_buffer::data() const {
    return state_->data;
}

void watched_buffer::begin(watch what) {
    for (std::size_t i = 0; i < state_->pages; ++i) state_->touched[i] = false;
    const auto free = std::find_if(slots.begin(), slots.end(),
                                   [](const slot& s) { return s.begin.load() == nullptr; });
    if (free == slots.end()) throw std::bad_alloc();
    free->bytes = state_->pages * page();
    free->touched = state_->touched.get();
    free->begin = state_->data;
    mprotect(state_->data, state_->pages * page(), what == watch::writes ? PROT_READ : PROT_NONE);
}

std::vector<bool> watched_buffer::end() {
    for (slot& s : slots)
        if (s.begin.load() == state_->data) s.begin = nullptr;
    mprotect(state_->data, state_->pages * page(), PROT_READ | PROT_WRITE);
    return std::vector<bool>(state_->touched.get(), state_->touched.get() + state_->pages);
}

} // namespace maskwise::guard
