#pragma once

#include "maskwise/maskwise.hpp"

#include <optional>
#include <string_view>

namespace maskwise {

// The broadcast rules as pure functions on extents. Shapes are aligned at their last dimension; a
// missing dimension counts as 1. A negative extent goes with nothing.

// NumPy's rule for two shapes: aligned extents are equal or one of them is 1. An extent of 0 goes
// with 0 and with 1 (and gives 0). nullopt where the shapes do not broadcast to each other.
std::optional<dims> broadcast_numpy(const dims& a, const dims& b);

// Whether `from` can be expanded to `to` without changing `to`: rank(from) <= rank(to), each
// aligned extent 1 or equal.
bool broadcasts_one_way(const dims& from, const dims& to);

// Throws shape_error with both shapes in the text where broadcasts_one_way is false. `what` names
// the operand.
void require_one_way(const dims& from, const dims& to, std::string_view what);

// The stride of `from` in dimension `d` of the `rank` dimensions that it is aligned to: 0 where it
// is expanded.
inline std::int64_t aligned_stride(const tensor_desc& from, int d, int rank) {
    const int dimension = d - (rank - from.extents.rank());
    return dimension >= 0 && from.extents[dimension] != 1 ? from.strides_bytes[dimension] : 0;
}

// Those of all dimensions of `to`, to which it broadcasts one-way.
dims broadcast_strides(const tensor_desc& from, const dims& to);

} // namespace maskwise
