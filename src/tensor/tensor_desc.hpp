#pragma once

#include "maskwise/maskwise.hpp"

#include <cstdint>

namespace maskwise {

// Row-major without gaps. An extent of 0 counts as 1 in the strides, as oneDNN counts it.
// Throws invalid_shape where a byte count leaves int64.
tensor_desc dense_desc(data_type type, const dims& extents);

// Product of the extents: 1 for a scalar, 0 for an empty tensor. Throws invalid_shape on overflow
// or a negative extent.
std::int64_t element_count(const dims& extents);

// No address space is larger, and sums over the four operands of a Select stay within int64.
inline constexpr std::int64_t max_span_bytes = std::int64_t{1} << 60;

// Bytes from the first to one past the last byte that the descriptor can touch; 0 where empty.
// Throws invalid_shape above max_span_bytes and on a negative extent.
std::int64_t span_bytes(const tensor_desc& desc);

} // namespace maskwise
