#pragma once

#include <cstdint>

namespace maskwise::contract {

// Replaces the process's operator new. Can make the allocations of Maskwise's plugin fail. These
// include allocations that the C++ library makes for the plugin.
namespace own_allocations {

// The `nth` allocation of Maskwise from now fails (0: the next allocation). With `onwards`, all
// later allocations fail, too.
void fail(std::int64_t nth, bool onwards);
// Ends the failures that fail() began. Returns whether an allocation failed.
bool stop();

// The number of Maskwise's live blocks. Blocks from before the first call of living() or fail() do
// not count.
std::int64_t living();

} // namespace own_allocations
} // namespace maskwise::contract
