#pragma once

#include <cstddef>
#include <cstdint>

// operator new of programs whose sources include allocations.cpp.
namespace maskwise::test {

// The number of calls so far.
std::int64_t allocations();

// From now on, allocations of `bytes` bytes fail; 0: none fails.
void fail_allocations_of(std::size_t bytes);

// Makes one allocation fail: the next is number 0. With `onwards`, all later ones fail, too.
void fail_allocation(std::int64_t number, bool onwards);
// Ends the failures. Returns whether an allocation failed.
bool stop_failing();

// The number of blocks not freed yet.
std::int64_t living_allocations();

} // namespace maskwise::test
