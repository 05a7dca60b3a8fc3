#include "graph/output_layout.hpp"

#include "base/checked.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace maskwise::graph {
namespace {

// Dimension numbers from the outermost to the innermost in memory.
std::array<int, max_rank> memory_order(const dims& strides) {
    std::array<int, max_rank> order{};
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.begin() + strides.rank(), [&](int a, int b) {
        return strides[a] != strides[b] ? strides[a] > strides[b] : a < b;
    });
    return order;
}

// Strides without gaps in the given order; an extent of 0 counts as 1, as oneDNN counts it.
dims dense_strides(const dims& shape, const std::array<int, max_rank>& order) {
    dims strides(shape.rank(), 1);
    std::int64_t next = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
        const int dim = order[static_cast<std::size_t>(i)];
        strides[dim] = next;
        const auto product = checked_multiply(next, std::max<std::int64_t>(shape[dim], 1));
        if (!product) throw invalid_shape("dst " + to_string(shape) + " has too many elements");
        next = *product;
    }
    return strides;
}

dims row_major(const dims& shape) {
    std::array<int, max_rank> order{};
    std::iota(order.begin(), order.end(), 0);
    return dense_strides(shape, order);
}

dims follow_model(const dims& shape, std::span<const logical_tensor* const> models) {
    for (const logical_tensor* model : models)
        if (model->extents == shape)
            return dense_strides(shape, memory_order(meant_strides(*model)));
    return row_major(shape);
}

} // namespace

void complete_output(logical_tensor& dst, const dims& shape,
                     std::span<const logical_tensor* const> models) {
    if (dst.layout != layout_kind::any && dst.layout != layout_kind::strided)
        throw invalid_argument("dst has a layout that cannot be written; ask for strided or any");
    const bool was_open = !dst.shape_known();
    dst.extents = shape;
    dst.rank_known = true;
    if (dst.layout == layout_kind::any)
        dst.strides_elems = follow_model(shape, models);
    else if (was_open)
        dst.strides_elems = row_major(shape);
    dst.layout = layout_kind::strided;
}

} // namespace maskwise::graph
