// A file of its own: where new and its use meet in one, the compiler takes free() for a mismatch.
#include "support/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> count{0};
std::atomic<std::size_t> failing{0};
} // namespace

std::int64_t maskwise::test::allocations() {
    return count;
}

void maskwise::test::fail_allocations_of(std::size_t bytes) {
    failing = bytes;
}

void* operator new(std::size_t bytes) {
    ++count;
    if (bytes != 0 && bytes == failing) throw std::bad_alloc();
    if (void* at = std::malloc(bytes)) return at;
    throw std::bad_alloc();
}

void operator delete(void* at) noexcept {
    std::free(at);
}

void operator delete(void* at, std::size_t) noexcept {
    std::free(at);
}

// As in libstdc++, where sanitizers would have an operator of their own.
void* operator new[](std::size_t bytes) {
    return operator new(bytes);
}

void operator delete[](void* at) noexcept {
    std::free(at);
}

void operator delete[](void* at, std::size_t) noexcept {
    std::free(at);
}
