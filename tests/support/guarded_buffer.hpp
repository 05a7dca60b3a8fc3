#pragma once

#include <cstddef>
#include <span>

namespace maskwise::test {

// Memory between two guard pages. edge::front: the bytes begin right after the first guard, page
// aligned like a client's allocation. edge::back: the bytes end right before the second guard. An
// access to a guard ends the test. The rest of the pages holds a pattern.
class guarded_buffer {
public:
    enum class edge { front, back };

    guarded_buffer() = default;
    guarded_buffer(std::size_t bytes, edge touching);
    guarded_buffer(guarded_buffer&& other) noexcept;
    guarded_buffer& operator=(guarded_buffer&& other) noexcept;
    ~guarded_buffer();

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }
    bool intact() const; // whether the pattern around the bytes is unchanged

private:
    std::span<std::byte> rest_before() const;
    std::span<std::byte> rest_after() const;

    std::byte* mapping_ = nullptr;
    std::size_t mapped_ = 0; // both guards included
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace maskwise::test
