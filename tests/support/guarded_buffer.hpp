#pragma once

#include <cstddef>
#include <cstdint>

namespace maskwise::test {

// Memory between two pages that may not be touched. The bytes begin right behind the first guard or
// end right before the second, so that reading or writing one byte too far ends the test.
class guarded_buffer {
public:
    enum class edge { front, back };

    guarded_buffer(std::size_t bytes, edge touching);
    ~guarded_buffer();
    guarded_buffer(const guarded_buffer&) = delete;
    guarded_buffer& operator=(const guarded_buffer&) = delete;

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

private:
    std::byte* mapping_ = nullptr;
    std::size_t mapped_ = 0;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace maskwise::test
