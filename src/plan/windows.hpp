#pragma once

#include "kernel/select/contract.hpp"
#include "plan/loop_nest.hpp"

#include <span>

namespace maskwise {

// Returns windows (see byte_windows) that cover runs of `item_bytes` at `offsets`; none if copying
// the runs one by one is faster. A window begins at a byte of a run and may end up to 15 bytes past
// the last run.
byte_windows choose_windows(std::span<const std::int32_t> offsets, std::int64_t item_bytes);

// Bytes from the first element of the loops to the end of the operand's last element, which windows
// must not read past. 0 if gaps between elements may contain unreadable pages.
std::int64_t windows_end(const loop_nest& nest, std::size_t operand);

} // namespace maskwise
