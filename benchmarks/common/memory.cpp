#include "common/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace maskwise::bench {
namespace {

std::byte* map_pages(std::int64_t bytes, int protection, int flags, int file) {
    void* at = mmap(nullptr, static_cast<std::size_t>(bytes), protection, flags, file, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

} // namespace

arena::~arena() {
    if (data_) munmap(data_, static_cast<std::size_t>(size_));
}

std::byte* arena::take(std::int64_t bytes) {
    if (bytes <= size_) return data_;
    if (data_) munmap(data_, static_cast<std::size_t>(size_));
    data_ = map_pages(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    size_ = data_ ? bytes : 0;
    if (!data_) fail("memory of " + std::to_string(bytes) + " bytes");
    std::memset(data_, 0, static_cast<std::size_t>(bytes));
    return data_;
}

shared_file::shared_file(const std::string& path, std::int64_t bytes, bool writable)
    : size_(std::max<std::int64_t>(bytes, 1)) {
    const int file = open(path.c_str(), writable ? O_RDWR | O_CREAT : O_RDONLY, 0600);
    if (file < 0) fail(path);
    struct stat now {};
    const bool grown = fstat(file, &now) == 0 &&
                       (now.st_size >= size_ || (writable && ftruncate(file, size_) == 0));
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    if (grown) data_ = map_pages(size_, protection, MAP_SHARED | MAP_POPULATE, file);
    const int error = errno;
    close(file);
    errno = error;
    if (!data_) fail(path + " of " + std::to_string(bytes) + " bytes");
}

shared_file::~shared_file() {
    munmap(data_, static_cast<std::size_t>(size_));
}

} // namespace maskwise::bench
