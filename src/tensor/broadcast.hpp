#pragma once

#include "maskwise/maskwise.hpp"

#include <string_view>

namespace maskwise {

// The broadcast rules as pure functions on extents. Shapes are aligned at their last dimension; a
// missing dimension counts as 1. All throw invalid_shape with both shapes in the text, and on
// negative extents.

// NumPy's rule for two shapes: aligned extents are equal or one of them is 1. An extent of 0 goes
// with 0 and with 1 (and gives 0).
dims broadcast_numpy(const dims& a, const dims& b);

// Requires that `from` can be expanded to `to` without changing `to`: rank(from) <= rank(to), each
// aligned extent 1 or equal. `what` names the operand in the text of the error.
void require_one_way(const dims& from, const dims& to, std::string_view what);

} // namespace maskwise
