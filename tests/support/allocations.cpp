// A separate file: if operator new and its use are in one file, the compiler warns that free() does
// not match.
#include "support/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> count{0}, living{0};
std::atomic<std::size_t> failing{0};
std::atomic<std::int64_t> until_failure{-1}; // below 0: no allocation fails
std::atomic<bool> fails_onwards{false}, has_failed{false};

bool must_fail() {
    if (until_failure < 0 || until_failure-- > 0) return false;
    if (fails_onwards) until_failure = 0;
    return has_failed = true;
}

void release(void* address) noexcept {
    if (address != nullptr) --living;
    std::free(address);
}
} // namespace

std::int64_t maskwise::test::allocations() {
    return count;
}

void maskwise::test::fail_allocations_of(std::size_t bytes) {
    failing = bytes;
}

void maskwise::test::fail_allocation(std::int64_t number, bool onwards) {
    fails_onwards = onwards;
    has_failed = false;
    until_failure = number;
}

bool maskwise::test::stop_failing() {
    until_failure = -1;
    return has_failed;
}

std::int64_t maskwise::test::living_allocations() {
    return living;
}

void* operator new(std::size_t bytes) {
    ++count;
    if ((bytes != 0 && bytes == failing) || must_fail()) throw std::bad_alloc();
    void* address = std::malloc(bytes);
    if (address == nullptr) throw std::bad_alloc();
    ++living;
    return address;
}

void operator delete(void* address) noexcept {
    release(address);
}

void operator delete(void* address, std::size_t) noexcept {
    release(address);
}

// Array forms are defined here, because a sanitizer would replace those of libstdc++.
void* operator new[](std::size_t bytes) {
    return operator new(bytes);
}

void operator delete[](void* address) noexcept {
    release(address);
}

void operator delete[](void* address, std::size_t) noexcept {
    release(address);
}
