#include "onednn/translate.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <string>

namespace maskwise::onednn {
namespace {

graph::layout_kind layout_from_abi(int layout) {
    switch (layout) {
    case abi::layout_any:
        return graph::layout_kind::any;
    case abi::layout_strided:
        return graph::layout_kind::strided;
    case abi::layout_opaque:
        return graph::layout_kind::opaque;
    default:
        return graph::layout_kind::undef;
    }
}

graph::property_kind property_from_abi(int property) {
    switch (property) {
    case abi::property_variable:
        return graph::property_kind::variable;
    case abi::property_constant:
        return graph::property_kind::constant;
    case abi::property_host_scalar:
        return graph::property_kind::host_scalar;
    default:
        return graph::property_kind::undef;
    }
}

} // namespace

data_type type_from_abi(int type) {
    switch (type) {
    case abi::type_f16:
        return data_type::f16;
    case abi::type_bf16:
        return data_type::bf16;
    case abi::type_f32:
        return data_type::f32;
    case abi::type_s32:
        return data_type::i32;
    case abi::type_s8:
        return data_type::i8;
    case abi::type_u8:
        return data_type::u8;
    case abi::type_f64:
        return data_type::f64;
    case abi::type_boolean:
        return data_type::boolean;
    case abi::type_s64:
        return data_type::i64;
    default:
        return data_type::undef;
    }
}

graph::logical_tensor from_abi(const abi::logical_tensor& tensor) {
    if (tensor.ndims < abi::unknown_ndims || tensor.ndims > abi::max_ndims)
        throw invalid_argument("tensor " + std::to_string(tensor.id) + " has rank " +
                               std::to_string(tensor.ndims) + ", expected -1..12");
    graph::logical_tensor result;
    result.id = tensor.id;
    result.type = type_from_abi(tensor.data_type);
    result.rank_known = tensor.ndims >= 0;
    result.layout = layout_from_abi(tensor.layout_type);
    result.property = property_from_abi(tensor.property);
    for (int i = 0; i < tensor.ndims; ++i) {
        result.extents.push_back(tensor.dims[i]);
        if (result.layout == graph::layout_kind::strided)
            result.strides_elems.push_back(tensor.layout.strides[i]);
    }
    return result;
}

std::vector<graph::logical_tensor> from_abi(std::span<const abi::logical_tensor* const> tensors) {
    std::vector<graph::logical_tensor> result;
    result.reserve(tensors.size());
    for (const abi::logical_tensor* tensor : tensors) {
        if (tensor == nullptr) throw invalid_argument("a logical tensor of the list is null");
        result.push_back(from_abi(*tensor));
    }
    return result;
}

abi::logical_tensor to_abi(const graph::logical_tensor& tensor,
                           const abi::logical_tensor& original) {
    abi::logical_tensor result = original;
    result.ndims = tensor.extents.rank();
    result.layout_type = abi::layout_strided;
    std::copy(tensor.extents.begin(), tensor.extents.end(), result.dims);
    std::copy(tensor.strides_elems.begin(), tensor.strides_elems.end(), result.layout.strides);
    return result;
}

bool has_known_shape(const abi::logical_tensor& tensor) {
    return tensor.ndims >= 0 && tensor.ndims <= abi::max_ndims &&
           std::count(tensor.dims, tensor.dims + tensor.ndims, abi::unknown_dim) == 0;
}

} // namespace maskwise::onednn
