#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maskwise::bench {

// Memory from the operating system, at the start of a page. It grows and is reused for later cases,
// so that a case's first call does not pay for its pages.
class arena {
public:
    arena() = default;
    ~arena();
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;

    // At least `bytes` bytes, all touched. Throws std::system_error if there is not enough memory.
    std::byte* take(std::int64_t bytes);

private:
    std::byte* data_ = nullptr;
    std::int64_t size_ = 0;
};

// The first bytes of a file. Throws std::runtime_error with its path if it has fewer.
void read_file(const std::string& path, std::byte* to, std::int64_t bytes);
std::vector<std::byte> read_file(const std::string& path, std::int64_t bytes);

} // namespace maskwise::bench
