#include "common/memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace maskwise::bench {

arena::~arena() {
    if (data_) munmap(data_, static_cast<std::size_t>(size_));
}

std::byte* arena::take(std::int64_t bytes) {
    if (bytes <= size_) return data_;
    if (data_) munmap(data_, static_cast<std::size_t>(size_));
    const auto size = static_cast<std::size_t>(bytes);
    void* const mapping =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = mapping == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapping);
    size_ = data_ ? bytes : 0;
    if (!data_)
        throw std::system_error(errno, std::generic_category(),
                                "memory of " + std::to_string(bytes) + " bytes");
    std::memset(data_, 0, size);
    return data_;
}

void read_file(const std::string& path, std::byte* to, std::int64_t bytes) {
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(to), bytes))
        throw std::runtime_error(path + ": cannot read " + std::to_string(bytes) + " bytes");
}

std::vector<std::byte> read_file(const std::string& path, std::int64_t bytes) {
    std::vector<std::byte> data(static_cast<std::size_t>(bytes));
    read_file(path, data.data(), bytes);
    return data;
}

} // namespace maskwise::bench
