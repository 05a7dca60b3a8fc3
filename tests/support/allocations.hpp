#pragma once

#include <cstddef>
#include <cstdint>

// operator new of a program that lists allocations.cpp among its sources.
namespace maskwise::test {

// How often it was called so far.
std::int64_t allocations();

// From now on those of so many bytes fail; 0: none.
void fail_allocations_of(std::size_t bytes);

// Of the next ones, one fails: the first is number 0. With `onwards` all after it fail as well.
void fail_allocation(std::int64_t number, bool onwards);
// None fails any more. Returns whether one did.
bool stop_failing();

// Blocks that were not freed yet.
std::int64_t living_allocations();

} // namespace maskwise::test
