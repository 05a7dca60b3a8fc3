#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace maskwise {

// Where a value of an execution may begin in its scratch memory.
inline constexpr std::size_t scratch_alignment = 64;

constexpr std::size_t padded_bytes(std::size_t bytes) {
    return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

// The first aligned address in `memory`, which needs scratch_alignment extra bytes.
inline std::byte* first_aligned(std::byte* memory) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    return memory + (scratch_alignment - start % scratch_alignment) % scratch_alignment;
}

// Caches the last execution's scratch for the next one. Any thread.
template <typename Scratch>
class spare {
public:
    ~spare() { take(); }

    // Null where none is kept.
    std::unique_ptr<Scratch> take() { return std::unique_ptr<Scratch>(kept_.exchange(nullptr)); }
    void give_back(std::unique_ptr<Scratch> used) {
        const std::unique_ptr<Scratch> replaced(kept_.exchange(used.release()));
    }

private:
    std::atomic<typename std::unique_ptr<Scratch>::pointer> kept_ = nullptr;
};

} // namespace maskwise
