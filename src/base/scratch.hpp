#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace maskwise {

// The alignment in bytes of every part of an execution's scratch memory.
inline constexpr std::size_t scratch_alignment = 64;

constexpr std::size_t padded_bytes(std::size_t bytes) {
    return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

// The first aligned address in `memory`, which needs scratch_alignment extra bytes.
inline std::byte* first_aligned(std::byte* memory) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    return memory + (scratch_alignment - start % scratch_alignment) % scratch_alignment;
}

// The memory of one execution, which grows to the largest request.
class scratch_memory {
public:
    // Returns the first aligned address. `bytes` includes scratch_alignment bytes for aligning.
    // Earlier contents are lost. Throws bad_alloc.
    std::byte* reserve(std::size_t bytes) {
        if (size_ < bytes) {
            size_ = 0;
            bytes_ = nullptr; // free first, so that old and new memory never coexist
            bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
            size_ = bytes;
        }
        return first_aligned(bytes_.get());
    }

private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
};

// Caches the scratch of up to `most` finished executions for later executions. `most` is at most
// most_cached. Thread-safe and lock-free.
template <typename Scratch>
class scratch_pool {
public:
    static constexpr std::size_t most_cached = 64;

    explicit scratch_pool(std::size_t most = 1) : most_(most) {}
    ~scratch_pool() {
        while (take() != nullptr) {
        }
    }

    // Null if no scratch is cached.
    std::unique_ptr<Scratch> take() {
        for (std::size_t i = 0; i < most_; ++i)
            if (Scratch* const cached = cached_[i].exchange(nullptr))
                return std::unique_ptr<Scratch>(cached);
        return nullptr;
    }
    void give_back(std::unique_ptr<Scratch> used) {
        for (std::size_t i = 0; i < most_; ++i) {
            Scratch* none = nullptr;
            if (!cached_[i].compare_exchange_strong(none, used.get())) continue;
            return static_cast<void>(used.release());
        }
        const std::unique_ptr<Scratch> replaced(cached_[0].exchange(used.release()));
    }

private:
    const std::size_t most_;
    std::array<std::atomic<Scratch*>, most_cached> cached_ = {};
};

// Calls work(first aligned address) with memory from the pool, or else with new memory. If `work`
// throws, the memory is freed and does not return to the pool.
template <class Work>
void with_scratch(scratch_pool<scratch_memory>& pool, std::int64_t bytes, const Work& work) {
    auto memory = pool.take();
    if (!memory) memory = std::make_unique<scratch_memory>();
    work(memory->reserve(static_cast<std::size_t>(bytes)));
    pool.give_back(std::move(memory));
}

} // namespace maskwise
