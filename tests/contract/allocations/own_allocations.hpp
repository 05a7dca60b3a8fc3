#pragma once

#include <cstdint>

namespace maskwise::contract {

// Replaces the process's operator new. Can make the plugin's allocations fail, also those through
// the C++ library.
namespace own_allocations {

// Makes the `nth` of Maskwise's next allocations fail, counted from 0. With `onwards`, all later
// allocations also fail.
void fail(std::int64_t nth, bool onwards);
// Ends the effect of fail(). Returns whether an allocation failed.
bool stop();

// Returns the number of live blocks that Maskwise allocated after the first call of living() or
// fail().
std::int64_t living();

} // namespace own_allocations
} // namespace maskwise::contract
