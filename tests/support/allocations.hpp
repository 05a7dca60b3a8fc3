#pragma once

#include <cstddef>
#include <cstdint>

// operator new of a program that lists allocations.cpp among its sources.
namespace maskwise::test {

// How often it was called so far.
std::int64_t allocations();

// From now on those of so many bytes fail; 0: none.
void fail_allocations_of(std::size_t bytes);

} // namespace maskwise::test
