#include "support/guarded_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

namespace maskwise::test {

guarded_buffer::guarded_buffer(std::size_t bytes, edge touching) : size_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = (bytes + page - 1) / page * page;
    mapped_ = usable + 2 * page;
    void* mapping =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::runtime_error("guarded_buffer: mmap failed");
    mapping_ = static_cast<std::byte*>(mapping);
    if (mprotect(mapping_, page, PROT_NONE) != 0 ||
        mprotect(mapping_ + page + usable, page, PROT_NONE) != 0)
        throw std::runtime_error("guarded_buffer: mprotect failed");
    data_ = mapping_ + page + (touching == edge::back ? usable - bytes : 0);
}

guarded_buffer::~guarded_buffer() {
    munmap(mapping_, mapped_);
}

} // namespace maskwise::test
