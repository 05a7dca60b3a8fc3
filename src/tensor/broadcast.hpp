#pragma once

#include "maskwise/maskwise.hpp"

#include <optional>
#include <string_view>

namespace maskwise {

// The broadcast rules. Shapes are aligned at their last dimension; a missing dimension counts as 1.
// A negative extent never broadcasts.

// Returns the common shape by NumPy's rule: aligned extents are equal, or one is 1. An extent of 0
// broadcasts with 0 and 1, and gives 0. Returns nullopt if the shapes do not broadcast.
std::optional<dims> broadcast_numpy(const dims& a, const dims& b);

// Whether `shape` broadcasts to exactly `target`: `shape` has no more dimensions than `target`, and
// each aligned extent is 1 or equals that of `target`.
bool broadcasts_one_way(const dims& shape, const dims& target);

// Throws shape_error, with both shapes, if broadcasts_one_way is false.
void require_one_way(const dims& shape, const dims& target, std::string_view operand_name);

// Returns the stride of `tensor` in dimension `d` of the `rank` dimensions that `tensor` is aligned
// to; 0 if broadcast.
inline std::int64_t aligned_stride(const tensor_desc& tensor, int d, int rank) {
    const int dimension = d - (rank - tensor.extents.rank());
    return dimension >= 0 && tensor.extents[dimension] != 1 ? tensor.strides_bytes[dimension] : 0;
}

// Returns the strides of `tensor` in all dimensions of `target`. `tensor` must broadcast one-way to
// `target`.
dims broadcast_strides(const tensor_desc& tensor, const dims& target);

} // namespace maskwise
