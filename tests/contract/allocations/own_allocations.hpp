#pragma once

#include <cstdint>

namespace maskwise::contract {

// Replaces the process's operator new. Can fail allocations that Maskwise's plugin makes, directly
// or through the C++ library.
namespace own_allocations {

// Makes Maskwise's `nth` allocation from now fail (0: the next) and, with `onwards`, all later
// ones.
void fail(std::int64_t nth, bool onwards);
// Ends the effect of fail(). Returns whether an allocation failed.
bool stop();

// Returns the number of live blocks that Maskwise allocated after the first call of living() or
// fail().
std::int64_t living();

} // namespace own_allocations
} // namespace maskwise::contract
