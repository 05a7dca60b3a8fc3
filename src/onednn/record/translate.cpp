#include "onednn/record/translate.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace maskwise::onednn {
namespace {

struct type_pair {
    int abi;
    data_type type;
};

constexpr type_pair type_pairs[] = {
    {abi::type_undef, data_type::undef},     {abi::type_f16, data_type::f16},
    {abi::type_bf16, data_type::bf16},       {abi::type_f32, data_type::f32},
    {abi::type_s32, data_type::i32},         {abi::type_s8, data_type::i8},
    {abi::type_u8, data_type::u8},           {abi::type_f64, data_type::f64},
    {abi::type_boolean, data_type::boolean}, {abi::type_s64, data_type::i64},
};

data_type type_from_abi(int type) {
    const auto* const pair = std::ranges::find(type_pairs, type, &type_pair::abi);
    return pair == std::end(type_pairs) ? data_type::undef : pair->type;
}

int type_to_abi(data_type type) {
    return std::ranges::find(type_pairs, type, &type_pair::type)->abi;
}

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

abi::logical_tensor with_description(const graph::logical_tensor& tensor,
                                     const abi::logical_tensor& original) {
    abi::logical_tensor result = original;
    if (type_from_abi(original.data_type) != tensor.type)
        result.data_type = type_to_abi(tensor.type);
    result.ndims = tensor.extents.rank();
    std::copy(tensor.extents.begin(), tensor.extents.end(), result.dims);
    result.layout_type = abi::layout_any;
    return result;
}

bool has_known_shape(const abi::logical_tensor& tensor) {
    return tensor.ndims >= 0 && tensor.ndims <= abi::max_ndims &&
           std::count(tensor.dims, tensor.dims + tensor.ndims, abi::unknown_dim) == 0;
}

} // namespace maskwise::onednn
