#include "graph/compile_checks.hpp"

#include "base/error.hpp"
#include "schema/select_schema.hpp"

#include <algorithm>

namespace maskwise::graph {
namespace {

// The order of the model's dimensions. If the order is not row-major, trailing dimensions of extent
// 1 are moved outermost, which changes no address. Without the move, a dimension of extent 1 could
// be innermost and share stride 1 with another dimension. For such strides, oneDNN 3.7 to 3.13
// computes a fused Add and SoftMax along the dimension as if the tensor were row-major.
dimension_order order_like(const logical_tensor& model) {
    auto order = order_of(meant_strides(model));
    const int rank = model.extents.rank();
    int end = rank;
    while (end > 0 && model.extents[end - 1] == 1) --end;
    if (order != row_major)
        std::stable_partition(order.begin(), order.begin() + rank, [=](int d) { return d >= end; });
    return order;
}

dims follow_model(const dims& shape, std::span<const logical_tensor* const> models) {
    for (const logical_tensor* model : models)
        if (model->extents == shape) return dense_strides(shape, 1, order_like(*model));
    return dense_strides(shape, 1);
}

} // namespace

std::size_t position_of(std::span<const logical_tensor> tensors, const logical_tensor& port,
                        const std::string& name) {
    const auto tensor = std::ranges::find(tensors, port.id, &logical_tensor::id);
    if (tensor == tensors.end())
        throw argument_error(name + " (tensor " + std::to_string(port.id) +
                             ") is not in the list given to compile");
    return static_cast<std::size_t>(tensor - tensors.begin());
}

void require_known_shape(const logical_tensor& input, const std::string& name) {
    if (!input.shape_known())
        throw argument_error("the shape of " + name +
                             " is not known at compile: " + shape_text(input));
    for (const std::int64_t extent : input.extents)
        if (extent < 0) throw shape_error(name + " has a negative extent: " + shape_text(input));
}

void require_readable(const logical_tensor& input, const std::string& name) {
    require_known_shape(input, name);
    if (input.layout != layout_kind::strided && input.property != property_kind::host_scalar)
        throw argument_error(name + " has a layout that cannot be read; only strided "
                                    "inputs can be read");
}

void require_fitting_dst(const logical_tensor& dst, const dims& inferred) {
    if (!dst.rank_known) return;
    bool fits = dst.extents.rank() == inferred.rank();
    for (int i = 0; fits && i < inferred.rank(); ++i)
        fits = dst.extents[i] == unknown_extent || dst.extents[i] == inferred[i];
    if (!fits)
        throw shape_error("dst is given as " + shape_text(dst) + ", but its inferred shape is " +
                          to_string(inferred));
}

void complete_output(logical_tensor& dst, const dims& shape,
                     std::span<const logical_tensor* const> models) {
    if (dst.layout != layout_kind::any && dst.layout != layout_kind::strided)
        throw argument_error("dst has a layout that cannot be written; use strided or any");
    const bool was_open = !dst.shape_known();
    dst.extents = shape;
    dst.rank_known = true;
    if (dst.layout == layout_kind::any)
        dst.strides_elems = follow_model(shape, models);
    else if (was_open)
        dst.strides_elems = dense_strides(shape, 1);
    dst.layout = layout_kind::strided;
}

auto_broadcast broadcast_of(const op& op) {
    const auto& schema = onednn_select();
    if (!op.auto_broadcast) return schema.default_broadcast;
    if (const auto parsed = parse_auto_broadcast(*op.auto_broadcast)) return *parsed;
    throw argument_error("auto_broadcast is '" + *op.auto_broadcast + "', expected none or numpy");
}

} // namespace maskwise::graph
