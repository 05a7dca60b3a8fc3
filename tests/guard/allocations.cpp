#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> count{0};
}

std::int64_t maskwise::guard::allocations() {
    return count;
}

void* operator new(std::size_t bytes) {
    ++count;
    if (void* at = std::malloc(bytes)) return at;
    throw std::bad_alloc();
}

void operator delete(void* at) noexcept {
    std::free(at);
}

void operator delete(void* at, std::size_t) noexcept {
    std::free(at);
}
