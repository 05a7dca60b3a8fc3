#pragma once

#include "maskwise/maskwise.hpp"

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace maskwise {

// Throws shape_error on a negative extent, with "<owner>: <name>", the shape, and the extent's
// value and position.
void require_no_negative(const dims& extents, std::string_view owner = "",
                         std::string_view name = "shape");

// Dimension indexes, outermost in memory first.
using dimension_order = std::array<int, max_rank>;
inline constexpr dimension_order row_major = [] {
    dimension_order order{};
    std::iota(order.begin(), order.end(), 0);
    return order;
}();

// Sorts the dimensions by stride, largest first; stable.
dimension_order order_of(const dims& strides);

// Returns strides without gaps; the innermost is `unit`. An extent of 0 counts as 1, as in oneDNN.
// Throws shape_error if a stride overflows int64.
dims dense_strides(const dims& extents, std::int64_t unit,
                   const dimension_order& order = row_major);

// Returns a dense tensor. Throws as dense_strides does, and shape_error on a negative extent.
tensor_desc dense_desc(data_type type, const dims& extents,
                       const dimension_order& order = row_major);

// Fills in dense strides if the tensor has none. Throws as dense_desc does.
void fill_in_strides(tensor_desc& desc);
tensor_desc with_strides(tensor_desc desc);

// Returns text such as "f32 {2,3}, strides in bytes {12,4}".
std::string to_string(const tensor_desc& desc);

dims without_last(const dims& extents, int count);
// Returns {outer..., rows, columns}.
dims with_matrix(dims outer, std::int64_t rows, std::int64_t columns);

// Product of the extents: 1 for a scalar, 0 for an empty tensor. Throws shape_error on overflow
// or a negative extent.
std::int64_t element_count(const dims& extents);

// No address space is larger. The sum of four such spans, as of a Select's operands, fits int64.
inline constexpr std::int64_t max_span_bytes = std::int64_t{1} << 60;

// Bytes from the first to the last byte of the elements, gaps included; 0 if the tensor is empty.
// Throws shape_error above max_span_bytes and on a negative extent.
std::int64_t span_bytes(const tensor_desc& desc);

} // namespace maskwise
