#pragma once

// Graph operators in double precision, for the oracles of attention, benchdnn and the fuzz targets.
// Shares no code with src/ or oneDNN.

#include "support/oracle.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace maskwise::test {

// Numbers, row-major.
struct grid {
    extent_list extents;
    std::vector<double> values;

    extent_list strides() const { return dense_view(nullptr, extents, 1).strides_bytes; }
};

// Applies value(x, y) to the elements of a and b, which must broadcast.
template <typename Value>
grid combine(const grid& a, const grid& b, const Value& value) {
    grid result{broadcast({a.extents, b.extents}).value(), {}};
    result.values.reserve(static_cast<std::size_t>(count_of(result.extents)));
    walk<2>(result.extents,
            {broadcast_strides(a.extents, a.strides(), result.extents),
             broadcast_strides(b.extents, b.strides(), result.extents)},
            [&](const auto& offsets) {
                result.values.push_back(value(a.values[static_cast<std::size_t>(offsets[0])],
                                              b.values[static_cast<std::size_t>(offsets[1])]));
            });
    return result;
}

// Calls visit(first element, step) for each line along the axis, in row-major order.
template <typename Visit>
void for_each_line(const grid& values, std::size_t axis, const Visit& visit) {
    const extent_list strides = values.strides();
    extent_list lines = values.extents;
    lines[axis] = 1;
    walk<1>(lines, {strides}, [&](const auto& offsets) {
        visit(static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(strides[axis]));
    });
}

// MatMul of rank 2 or more; nullopt if shapes do not match. Ignores products of elements of `a`
// whose absolute value is at most `negligible`, even products with NaN.
std::optional<grid> multiply_matrices(grid a, grid b, bool transposes_a, bool transposes_b,
                                      double negligible = -1);

// SoftMax along the axis, and the logarithms of its sums. The logarithms have extent 1 along the
// axis.
std::pair<grid, grid> soft_max(grid x, std::size_t axis, bool inf_as_zero);

// The index of each element along the axis.
grid index_along(const extent_list& extents, std::size_t axis);

// The maximum along the axis, whose extent becomes 1.
grid largest_along(const grid& values, std::size_t axis);

} // namespace maskwise::test
