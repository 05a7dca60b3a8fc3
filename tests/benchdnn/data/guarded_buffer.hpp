#pragma once

#include <cstddef>
#include <span>

namespace maskwise::bench {

// Where a buffer's bytes lie in their pages.
enum class placement {
    at_guard, // the last byte borders on an unreadable page: an over-read or over-write traps
    aligned,  // the first byte is page aligned, as a fast client would allocate
};

// Bytes of their own mapping between two unreadable pages. With at_guard the bytes in front,
// which cannot trap, hold a pattern that intact() checks.
class guarded_buffer {
public:
    guarded_buffer() = default;
    guarded_buffer(std::size_t bytes, placement where);
    guarded_buffer(guarded_buffer&& other) noexcept;
    guarded_buffer& operator=(guarded_buffer&& other) noexcept;
    ~guarded_buffer();

    std::span<std::byte> bytes() const { return {data_, size_}; }
    bool intact() const; // nothing was written in front of or, within the page, behind the bytes

private:
    std::span<std::byte> page_rest_front() const;
    std::span<std::byte> page_rest_back() const;

    std::byte* mapping_ = nullptr;
    std::size_t mapped_ = 0; // both guard pages included
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace maskwise::bench
