#include "graph/output_layout.hpp"

#include "base/error.hpp"
#include "tensor/tensor_desc.hpp"

namespace maskwise::graph {
namespace {

dims follow_model(const dims& shape, std::span<const logical_tensor* const> models) {
    for (const logical_tensor* model : models)
        if (model->extents == shape)
            return dense_strides(shape, 1, order_of(meant_strides(*model)));
    return dense_strides(shape, 1);
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
        dst.strides_elems = dense_strides(shape, 1);
    dst.layout = layout_kind::strided;
}

} // namespace maskwise::graph
