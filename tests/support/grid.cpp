#include "support/grid.hpp"

#include "support/operations.hpp"

#include <algorithm>
#include <cmath>

namespace maskwise::test {
namespace {

std::size_t index(std::int64_t number) {
    return static_cast<std::size_t>(number);
}

void transpose(grid& matrices) {
    auto &rows = matrices.extents.end()[-2], &columns = matrices.extents.end()[-1];
    std::vector<double> transposed;
    transposed.reserve(matrices.values.size());
    for (std::size_t first = 0; first < matrices.values.size(); first += index(rows * columns))
        for (std::int64_t c = 0; c < columns; ++c)
            for (std::int64_t r = 0; r < rows; ++r)
                transposed.push_back(matrices.values[first + index(r * columns + c)]);
    matrices.values = std::move(transposed);
    std::swap(rows, columns);
}

void multiply(const double* a, const double* b, double* c, std::size_t m, std::size_t k,
              std::size_t n, double negligible) {
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t l = 0; l < k; ++l) {
            const double factor = a[i * k + l];
            if (std::fabs(factor) <= negligible) continue;
            const double* row = b + l * n;
            double* out = c + i * n;
            for (std::size_t j = 0; j < n; ++j) out[j] += factor * row[j];
        }
}

// Strides, in elements, of the dimensions before the matrices, for the broadcast shape `target`.
extent_list batch_strides(const grid& numbers, const extent_list& target) {
    const extent_list strides = numbers.strides();
    return broadcast_strides({numbers.extents.begin(), numbers.extents.end() - 2},
                             {strides.begin(), strides.end() - 2}, target);
}

} // namespace

std::optional<grid> multiply_matrices(grid a, grid b, bool transposes_a, bool transposes_b,
                                      double negligible) {
    if (a.extents.size() < 2 || b.extents.size() < 2) return std::nullopt;
    if (transposes_a) transpose(a);
    if (transposes_b) transpose(b);
    const std::int64_t m = a.extents.end()[-2], k = a.extents.back(), n = b.extents.back();
    auto extents = broadcast(
        {{a.extents.begin(), a.extents.end() - 2}, {b.extents.begin(), b.extents.end() - 2}});
    if (!extents || b.extents.end()[-2] != k) return std::nullopt;
    const std::array<extent_list, 2> strides{batch_strides(a, *extents),
                                             batch_strides(b, *extents)};
    std::vector<double> values(index(count_of(*extents) * m * n), 0.0);
    double* out = values.data();
    if (m * k * n != 0)
        walk<2>(*extents, strides, [&](const auto& offsets) {
            multiply(a.values.data() + offsets[0], b.values.data() + offsets[1], out, index(m),
                     index(k), index(n), negligible);
            out += m * n;
        });
    extents->insert(extents->end(), {m, n});
    return grid{*extents, std::move(values)};
}

std::pair<grid, grid> soft_max(grid x, std::size_t axis, bool inf_as_zero) {
    grid sums{x.extents, {}};
    for_each_line(x, axis, [&](std::size_t first, std::size_t step) {
        sums.values.push_back(
            soft_max(x.values.data() + first, index(x.extents[axis]), step, inf_as_zero));
    });
    sums.extents[axis] = 1;
    return {std::move(x), std::move(sums)};
}

grid index_along(const extent_list& extents, std::size_t axis) {
    extent_list strides(extents.size(), 0);
    strides[axis] = 1;
    grid result{extents, {}};
    walk<1>(extents, {strides},
            [&](const auto& offsets) { result.values.push_back(static_cast<double>(offsets[0])); });
    return result;
}

grid largest_along(const grid& numbers, std::size_t axis) {
    grid result{numbers.extents, {}};
    for_each_line(numbers, axis, [&](std::size_t first, std::size_t step) {
        double largest = numbers.values[first];
        for (std::size_t i = 1; i < index(numbers.extents[axis]); ++i)
            largest = std::max(largest, numbers.values[first + i * step]);
        result.values.push_back(largest);
    });
    result.extents[axis] = 1;
    return result;
}

} // namespace maskwise::test
