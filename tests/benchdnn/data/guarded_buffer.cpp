#include "data/guarded_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace maskwise::bench {
namespace {

constexpr std::byte filler{0xa5};

std::size_t page_size() {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

} // namespace

guarded_buffer::guarded_buffer(std::size_t bytes, placement where) : size_(bytes) {
    const std::size_t page = page_size();
    const std::size_t usable = std::max<std::size_t>((bytes + page - 1) / page, 1) * page;
    mapped_ = usable + 2 * page;
    void* mapping = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<std::byte*>(mapping);
    if (mprotect(mapping_ + page, usable, PROT_READ | PROT_WRITE) != 0)
        throw std::system_error(errno, std::generic_category(), "mprotect");
    data_ = mapping_ + page + (where == placement::at_guard ? usable - bytes : 0);
    std::ranges::fill(page_rest_front(), filler);
    std::ranges::fill(page_rest_back(), filler);
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
    if (mapping_) munmap(mapping_, mapped_);
}

std::span<std::byte> guarded_buffer::page_rest_front() const {
    std::byte* first = mapping_ + page_size();
    return {first, static_cast<std::size_t>(data_ - first)};
}

std::span<std::byte> guarded_buffer::page_rest_back() const {
    std::byte* end = mapping_ + mapped_ - page_size();
    return {data_ + size_, static_cast<std::size_t>(end - (data_ + size_))};
}

bool guarded_buffer::intact() const {
    if (!mapping_) return true;
    const auto untouched = [](std::span<std::byte> rest) {
        return std::ranges::all_of(rest, [](std::byte b) { return b == filler; });
    };
    return untouched(page_rest_front()) && untouched(page_rest_back());
}

} // namespace maskwise::bench
