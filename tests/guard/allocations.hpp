#pragma once

#include <cstdint>

namespace maskwise::guard {

// How often operator new was called in this program so far.
std::int64_t allocations();

} // namespace maskwise::guard
