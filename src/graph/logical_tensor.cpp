#include "graph/logical_tensor.hpp"

#include "base/checked.hpp"
#include "base/error.hpp"

#include <algorithm>

namespace maskwise::graph {

bool logical_tensor::shape_known() const {
    return rank_known && std::find(extents.begin(), extents.end(), unknown_extent) == extents.end();
}

dims meant_strides(const logical_tensor& tensor) {
    dims strides = tensor.strides_elems;
    std::int64_t inside = 1;
    for (int d = strides.rank() - 1; d >= 0; --d) {
        if (tensor.extents[d] == 1) strides[d] = inside;
        const auto whole = checked_multiply(tensor.extents[d], strides[d]);
        inside = std::max(inside, whole.value_or(INT64_MAX));
    }
    return strides;
}

bool is_one_element(const logical_tensor& tensor) {
    return tensor.rank_known &&
           std::ranges::all_of(tensor.extents, [](std::int64_t extent) { return extent == 1; });
}

bool same_known_shape(const logical_tensor& a, const logical_tensor& b) {
    return a.shape_known() && b.shape_known() && a.extents == b.extents;
}

bool lie_alike(const logical_tensor& a, const logical_tensor& b) {
    return a.layout == b.layout && a.layout_id == b.layout_id && a.extents == b.extents &&
           meant_strides(a) == meant_strides(b);
}

std::string shape_text(const logical_tensor& tensor) {
    if (!tensor.rank_known) return "unknown rank";
    std::string text = "{";
    for (const std::int64_t extent : tensor.extents) {
        if (text.size() > 1) text += ',';
        text += extent == unknown_extent ? "?" : std::to_string(extent);
    }
    return text + '}';
}

tensor_desc to_desc(const logical_tensor& tensor) {
    if (tensor.layout != layout_kind::strided || !tensor.shape_known())
        throw argument_error("tensor " + std::to_string(tensor.id) + " (" + shape_text(tensor) +
                             ") has no known shape and strides");
    tensor_desc desc{tensor.type, tensor.extents, {}};
    const auto width = static_cast<std::int64_t>(width_bytes(tensor.type));
    for (const std::int64_t stride_elems : tensor.strides_elems) {
        const auto stride_bytes = checked_multiply(stride_elems, width);
        if (stride_elems < 0)
            throw argument_error("strides " + to_string(tensor.strides_elems) + " of tensor " +
                                 std::to_string(tensor.id) + " are negative");
        if (!stride_bytes)
            throw argument_error("strides " + to_string(tensor.strides_elems) + " of tensor " +
                                 std::to_string(tensor.id) + " overflow 64 bits in bytes");
        desc.strides_bytes.push_back(*stride_bytes);
    }
    span_bytes(desc); // throws if the span is too large to be addressed
    return desc;
}

tensor_desc to_input_desc(const logical_tensor& input) {
    logical_tensor strided = input;
    if (input.property == property_kind::host_scalar) {
        strided.layout = layout_kind::strided;
        strided.strides_elems = dims::filled(input.extents.rank(), 0);
    }
    return to_desc(strided);
}

} // namespace maskwise::graph
