#pragma once

#include <cstdint>

namespace maskwise::contract {

// Replaces the process's operator new. Recognizes allocations by Maskwise's plugin, including those
// by the C++ library for the plugin, and can make these allocations fail.
namespace own_allocations {

// The `nth` allocation of Maskwise from now fails (0: the next one). With `onwards`, all later
// allocations fail, too.
void fail(std::int64_t nth, bool onwards);
// Ends the failures that fail() began. Returns whether an allocation failed.
bool stop();

// The number of Maskwise's live blocks. Blocks from before the first call of living() or fail() do
// not count.
std::int64_t living();

} // namespace own_allocations
} // namespace maskwise::contract
