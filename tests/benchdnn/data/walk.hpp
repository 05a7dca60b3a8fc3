#pragma once

// Row-by-row traversal of several operands that share one shape but not their strides.

#include "model/graph.hpp"

#include <array>
#include <cstdint>

namespace maskwise::bench {

// Calls row(offsets, extent) for every innermost row of `shape`; `strides` and offsets count
// elements, the caller steps along the row by strides[k].back() (0-D: one row of one element).
template <std::size_t N, typename Row>
void walk_rows(const dims& shape, const std::array<dims, N>& strides, Row&& row) {
    if (element_count(shape) == 0) return;
    const std::size_t outer = shape.empty() ? 0 : shape.size() - 1;
    const std::int64_t extent = shape.empty() ? 1 : shape.back();
    dims index(outer, 0);
    std::array<std::int64_t, N> offsets{};
    while (true) {
        row(offsets, extent);
        std::size_t dim = outer;
        while (dim-- > 0) {
            for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[k][dim];
            if (++index[dim] < shape[dim]) break;
            for (std::size_t k = 0; k < N; ++k) offsets[k] -= strides[k][dim] * shape[dim];
            index[dim] = 0;
        }
        if (dim == static_cast<std::size_t>(-1)) return;
    }
}

inline std::int64_t inner_stride(const dims& strides) {
    return strides.empty() ? 0 : strides.back();
}

} // namespace maskwise::bench
