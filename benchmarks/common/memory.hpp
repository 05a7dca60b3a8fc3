#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maskwise::bench {

// Page-aligned memory from the operating system. A later request that fits reuses the memory.
class arena {
public:
    arena() = default;
    ~arena();
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;

    // Returns at least `bytes` bytes whose pages are already resident. A larger request unmaps the
    // memory of earlier requests. Throws std::system_error if there is not enough memory.
    std::byte* take(std::int64_t bytes);

private:
    std::byte* data_ = nullptr;
    std::int64_t size_ = 0;
};

// Read the first `bytes` bytes of a file. Throw std::runtime_error with the path if the file is
// shorter or cannot be opened.
void read_file(const std::string& path, std::byte* to, std::int64_t bytes);
std::vector<std::byte> read_file(const std::string& path, std::int64_t bytes);

} // namespace maskwise::bench
