#include "onednn/record/translate.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace maskwise::onednn {
namespace {

struct known_type {
    int abi;
    data_type type;
};
#define F(name, number, of_maskwise)                                                               \
    { number, data_type::of_maskwise }
constexpr known_type types[] = {MASKWISE_ONEDNN_TYPES(F)};
#undef F
struct known_operator {
    int abi;
    graph::op_kind kind;
    int first = abi::attr_none, second = abi::attr_none; // the attributes of a row's constants
};
#define F(name, number)                                                                            \
    { number, graph::op_kind::name }
#define MASKWISE_ROW_BINARY(name, turned, onednn, onnx) {onednn, graph::op_kind::name},
#define MASKWISE_ROW_UNARY(name, onednn, onnx, first, second)                                      \
    {onednn, graph::op_kind::name, abi::attr_##first, abi::attr_##second},
constexpr known_operator operators[] = {
#include "kernel/rows/operators.inc"
    MASKWISE_ONEDNN_OPERATORS(F)};
#undef F
static_assert(std::size(operators) == static_cast<std::size_t>(graph::op_kind::other));

// Null for an operator that is not in the list.
const known_operator* find_operator(int number) {
    const auto* const known = std::ranges::find(operators, number, &known_operator::abi);
    return known == std::end(operators) ? nullptr : known;
}

data_type type_from_abi(int number) {
    const auto* const known = std::ranges::find(types, number, &known_type::abi);
    return known == std::end(types) ? data_type::undef : known->type;
}

// By oneDNN's numbers; the first one stands for all others.
constexpr graph::layout_kind layouts[] = {graph::layout_kind::undef, graph::layout_kind::any,
                                          graph::layout_kind::strided, graph::layout_kind::opaque};
constexpr graph::property_kind properties[] = {
    graph::property_kind::undef, graph::property_kind::variable, graph::property_kind::constant,
    graph::property_kind::host_scalar};

template <class Kind, std::size_t Count>
Kind kind_of(const Kind (&kinds)[Count], int number) {
    const auto index = static_cast<std::size_t>(number);
    return kinds[index < Count ? index : 0];
}

// The attribute where it is of that type.
template <class Value>
std::optional<Value> value_of(const op_record& record, int name) {
    const attribute* found = record.find(name);
    const auto* value = found != nullptr ? std::get_if<Value>(found) : nullptr;
    return value != nullptr ? std::optional(*value) : std::nullopt;
}

// The attribute where it is one number of that type.
template <class Number>
std::optional<Number> number_of(const op_record& record, int name) {
    const auto numbers = value_of<std::vector<Number>>(record, name);
    return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

// oneDNN takes zero points for 32 bits.
std::optional<float> zero_point_of(const op_record& record) {
    if (record.find(abi::attr_zps) == nullptr) return 0.0F;
    const auto zero_point = number_of<std::int64_t>(record, abi::attr_zps);
    if (!zero_point || !std::in_range<std::int32_t>(*zero_point)) return std::nullopt;
    return static_cast<float>(*zero_point);
}

// Nothing if the operator has no constants, if one is missing, or if oneDNN refuses them: oneDNN
// then says so.
std::optional<std::array<float, 2>> constants_of(const op_record& record,
                                                 const known_operator& known) {
    std::optional<float> first, second = 0.0F;
    if (known.kind == graph::op_kind::quantize) {
        first = number_of<float>(record, abi::attr_scales);
        second = zero_point_of(record);
        if (first == 0.0F) return std::nullopt;
    } else {
        if (known.first != abi::attr_none) first = number_of<float>(record, known.first);
        if (known.second != abi::attr_none) second = number_of<float>(record, known.second);
        if (known.kind == graph::op_kind::clamp && !(first <= second)) return std::nullopt;
    }
    if (!first || !second) return std::nullopt;
    return std::array{*first, *second};
}

// An invalid rank counts as unknown; compile reports it.
graph::logical_tensor as_described(abi::logical_tensor tensor) {
    if (tensor.ndims < 0 || tensor.ndims > abi::max_ndims) tensor.ndims = abi::unknown_ndims;
    return from_abi(tensor);
}

} // namespace

graph::logical_tensor from_abi(const abi::logical_tensor& tensor) {
    if (tensor.ndims < abi::unknown_ndims || tensor.ndims > abi::max_ndims)
        throw argument_error("tensor " + std::to_string(tensor.id) + " has rank " +
                             std::to_string(tensor.ndims) + ", expected -1..12");
    graph::logical_tensor result;
    result.id = tensor.id;
    result.type = type_from_abi(tensor.data_type);
    result.rank_known = tensor.ndims >= 0;
    result.layout = kind_of(layouts, tensor.layout_type);
    result.property = kind_of(properties, tensor.property);
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
        if (tensor == nullptr) throw argument_error("a logical tensor of the list is null");
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

abi::logical_tensor with_shape_of(const graph::logical_tensor& tensor,
                                  const abi::logical_tensor& original) {
    abi::logical_tensor result = original;
    result.ndims = tensor.extents.rank();
    std::copy(tensor.extents.begin(), tensor.extents.end(), result.dims);
    result.layout_type = abi::layout_any;
    return result;
}

bool has_known_shape(const abi::logical_tensor& tensor) {
    return tensor.ndims >= 0 && tensor.ndims <= abi::max_ndims &&
           std::count(tensor.dims, tensor.dims + tensor.ndims, abi::unknown_dim) == 0;
}

graph::op translate(const op_record& record) {
    graph::op op;
    op.id = record.id;
    const known_operator* const known = find_operator(record.kind);
    if (known != nullptr) op.kind = known->kind;
    op.name = !record.name.empty() ? std::string(record.name)
                                   : (op.kind == graph::op_kind::select ? "Select_" : "op_") +
                                         std::to_string(record.id);
    op.auto_broadcast = value_of<std::string>(record, abi::attr_auto_broadcast);
    op.mode = value_of<std::string>(record, abi::attr_mode);
    op.axis = number_of<std::int64_t>(record, abi::attr_axis);
    if (known != nullptr) op.constants = constants_of(record, *known);
    op.transpose_a = value_of<bool>(record, abi::attr_transpose_a).value_or(false);
    op.transpose_b = value_of<bool>(record, abi::attr_transpose_b).value_or(false);
    op.order = value_of<std::vector<std::int64_t>>(record, abi::attr_order).value_or(op.order);
    for (std::int64_t& d : op.order) // may be counted from the end
        if (d < 0) d += static_cast<std::int64_t>(op.order.size());
    for (const auto& input : record.inputs) op.inputs.push_back(as_described(input));
    for (const auto& output : record.outputs) op.outputs.push_back(as_described(output));
    return op;
}

} // namespace maskwise::onednn
