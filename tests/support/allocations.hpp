#pragma once

#include <cstddef>
#include <cstdint>

// operator new of a program that lists allocations.cpp among its sources.
namespace maskwise::test {

// How often it was called so far.
std::int64_t allocations();

// From now on, allocations of `bytes` bytes fail; 0: none fails.
void fail_allocations_of(std::size_t bytes);

// One of the next allocations fails; the first is number 0. With `onwards`, all later ones fail,
// too.
void fail_allocation(std::int64_t number, bool onwards);
// No allocation fails any more. Returns whether one did.
bool stop_failing();

// Blocks that were not freed yet.
std::int64_t living_allocations();

} // namespace maskwise::test
