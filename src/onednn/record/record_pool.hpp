#pragma once

#include <cstddef>
#include <new>

namespace maskwise::onednn {

// Memory for the records of operators. Every operator of every graph gets one for a moment, and
// through malloc that costs more than all the rest: freed blocks of this size are merged and split
// again. So a thread keeps the blocks that it frees for its next records, up to a bound.
inline constexpr std::size_t record_block_bytes = 1536; // larger records are not kept
void* take_record_block(std::size_t bytes);
void give_record_block(void* block, std::size_t bytes) noexcept;

template <typename T>
struct record_allocator {
    using value_type = T;

    record_allocator() = default;
    template <typename U>
    record_allocator(const record_allocator<U>&) noexcept {}

    T* allocate(std::size_t count) { return static_cast<T*>(take_record_block(count * sizeof(T))); }
    void deallocate(T* block, std::size_t count) noexcept {
        give_record_block(block, count * sizeof(T));
    }
    friend bool operator==(const record_allocator&, const record_allocator&) { return true; }
};

} // namespace maskwise::onednn
