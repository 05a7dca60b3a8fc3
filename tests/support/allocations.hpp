#pragma once

#include <cstddef>
#include <cstdint>

// Counts allocations and makes allocations fail, in programs that compile allocations.cpp.
namespace maskwise::test {

// The number of allocations so far.
std::int64_t allocations();

// From now on, allocations of exactly `bytes` bytes fail. With 0, no allocation fails.
void fail_allocations_of(std::size_t bytes);

// Makes one later allocation fail; number 0 is the next allocation. With `onwards`, all later
// allocations fail, too.
void fail_allocation(std::int64_t number, bool onwards);
// Ends the failures of fail_allocation. Returns whether an allocation failed.
bool stop_failing();

// The number of blocks not freed yet.
std::int64_t living_allocations();

} // namespace maskwise::test
