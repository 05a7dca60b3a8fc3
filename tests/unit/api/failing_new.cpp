// A file of its own: where new and its use meet in one, the compiler takes free() for a mismatch.
#include "failing_new.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> failing{0};
}

void fail_allocations_of(std::size_t bytes) {
    failing = bytes;
}

void* operator new(std::size_t bytes) {
    if (bytes != 0 && bytes == failing) throw std::bad_alloc();
    if (void* memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
