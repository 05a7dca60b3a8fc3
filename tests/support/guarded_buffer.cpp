#include "support/guarded_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace maskwise::test {
namespace {

constexpr std::byte pattern{0xa5};

std::size_t page_size() {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

} // namespace

guarded_buffer::guarded_buffer(std::size_t bytes, edge touching) : size_(bytes) {
    const std::size_t page = page_size(), usable = (bytes + page - 1) / page * page;
    mapped_ = usable + 2 * page;
    void* mapping = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<std::byte*>(mapping);
    if (usable > 0 && mprotect(mapping_ + page, usable, PROT_READ | PROT_WRITE) != 0)
        throw std::system_error(errno, std::generic_category(), "mprotect");
    data_ = mapping_ + page + (touching == edge::back ? usable - bytes : 0);
    std::ranges::fill(rest_before(), pattern);
    std::ranges::fill(rest_after(), pattern);
}

guarded_buffer::guarded_buffer(guarded_buffer&& other) noexcept {
    *this = std::move(other);
}

guarded_buffer& guarded_buffer::operator=(guarded_buffer&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

guarded_buffer::~guarded_buffer() {
    if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

std::span<std::byte> guarded_buffer::rest_before() const {
    return {mapping_ + page_size(), data_};
}

std::span<std::byte> guarded_buffer::rest_after() const {
    return {data_ + size_, mapping_ + mapped_ - page_size()};
}

bool guarded_buffer::intact() const {
    if (mapping_ == nullptr) return true;
    const auto is_pattern = [](std::byte each) { return each == pattern; };
    return std::ranges::all_of(rest_before(), is_pattern) &&
           std::ranges::all_of(rest_after(), is_pattern);
}

} // namespace maskwise::test
