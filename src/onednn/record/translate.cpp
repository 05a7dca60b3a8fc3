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
constexpr known_type types[] = {
#define MASKWISE_DATA_TYPE(name, width, onednn, ...) {onednn, data_type::name},
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
};
struct known_operator {
    int abi;
    graph::op_kind kind;
    int attribute = abi::attr_none; // the attribute that is a row operator's constant
};
#define F(name, number)                                                                            \
    { number, graph::op_kind::name }
#define MASKWISE_ROW_BINARY(name, reversed_operands, onednn, onnx) {onednn, graph::op_kind::name},
#define MASKWISE_ROW_UNARY(name, onednn, onnx, attribute)                                          \
    {onednn, graph::op_kind::name, abi::attr_##attribute},
constexpr known_operator operators[] = {
#include "kernel/rows/operators.inc"
    MASKWISE_ONEDNN_OPERATORS(F)};
#undef F
static_assert(std::size(operators) == static_cast<std::size_t>(graph::op_kind::other));

const known_operator* find_operator(int number) {
    const auto* const known = std::ranges::find(operators, number, &known_operator::abi);
    return known == std::end(operators) ? nullptr : known;
}

data_type type_from_abi(int number) {
    const auto* const known = std::ranges::find(types, number, &known_type::abi);
    return number == 0 || known == std::end(types) ? data_type::undef : known->type;
}

int type_to_abi(const graph::logical_tensor& tensor) {
    const auto* const known = std::ranges::find(types, tensor.type, &known_type::type);
    return known == std::end(types) ? tensor.host_type : known->abi;
}

// Layouts and properties have the same numbers in oneDNN and in Maskwise. Unknown numbers become
// undef.
static_assert(static_cast<int>(graph::layout_kind::opaque) == abi::layout_opaque);
static_assert(static_cast<int>(graph::property_kind::host_scalar) == abi::property_host_scalar);
template <class Kind>
Kind kind_of(int number, Kind last) {
    const bool is_known = number >= 0 && number <= static_cast<int>(last);
    return is_known ? static_cast<Kind>(number) : Kind::undef;
}

template <class Value>
std::optional<Value> value_of(const op_record& record, int name) {
    const attribute* const any = record.find(name);
    const auto* const value = any != nullptr ? std::get_if<Value>(any) : nullptr;
    return value != nullptr ? std::optional(*value) : std::nullopt;
}

// Returns the attribute, if it is one number of this type.
template <class Number>
std::optional<Number> number_of(const op_record& record, int name) {
    const auto numbers = value_of<std::vector<Number>>(record, name);
    return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

// Returns nullopt for zero points per channel, and for those outside oneDNN's 32 bits.
std::optional<float> zero_point_of(const op_record& record) {
    if (record.find(abi::attr_zps) == nullptr) return 0.0F;
    const auto zero_point = number_of<std::int64_t>(record, abi::attr_zps);
    if (!zero_point || !std::in_range<std::int32_t>(*zero_point)) return std::nullopt;
    return static_cast<float>(*zero_point);
}

// Returns nullopt if the operator has no constants, or if oneDNN reports a missing or invalid one.
std::optional<std::array<float, 2>> constants_of(const op_record& record,
                                                 const known_operator& known) {
    std::optional<float> first, second = 0.0F;
    if (known.kind == graph::op_kind::quantize) {
        first = number_of<float>(record, abi::attr_scales);
        second = zero_point_of(record);
        if (first == 0.0F) return std::nullopt;
    } else if (known.attribute != abi::attr_none) {
        first = number_of<float>(record, known.attribute);
    }
    if (!first || !second) return std::nullopt;
    return std::array{*first, *second};
}

// An invalid rank counts as unknown; compile reports the error.
logical_tensor as_described(abi::logical_tensor tensor) {
    if (tensor.ndims < 0 || tensor.ndims > abi::max_ndims) tensor.ndims = abi::unknown_ndims;
    return from_abi(tensor);
}

} // namespace

logical_tensor from_abi(const abi::logical_tensor& tensor) {
    if (tensor.ndims < abi::unknown_ndims || tensor.ndims > abi::max_ndims)
        throw argument_error("tensor " + std::to_string(tensor.id) + " has rank " +
                             std::to_string(tensor.ndims) + ", expected -1..12");
    logical_tensor result;
    result.id = tensor.id;
    result.type = type_from_abi(tensor.data_type);
    if (result.type == data_type::undef) result.host_type = tensor.data_type;
    result.rank_known = tensor.ndims >= 0;
    result.layout = kind_of(tensor.layout_type, graph::layout_kind::opaque);
    result.property = kind_of(tensor.property, graph::property_kind::host_scalar);
    if (result.layout == graph::layout_kind::opaque) result.layout_id = tensor.layout.layout_id;
    for (int i = 0; i < tensor.ndims; ++i) {
        result.extents.push_back(tensor.dims[i]);
        if (result.layout == graph::layout_kind::strided)
            result.strides_elems.push_back(tensor.layout.strides[i]);
    }
    return result;
}

abi::logical_tensor to_abi(const logical_tensor& tensor) {
    abi::logical_tensor result{};
    result.id = tensor.id;
    result.ndims = tensor.rank_known ? tensor.extents.rank() : abi::unknown_ndims;
    std::ranges::copy(tensor.extents, result.dims);
    result.data_type = type_to_abi(tensor);
    result.property = static_cast<int>(tensor.property);
    result.layout_type = static_cast<int>(tensor.layout);
    if (tensor.layout == graph::layout_kind::opaque)
        result.layout.layout_id = tensor.layout_id;
    else
        std::ranges::copy(tensor.strides_elems, result.layout.strides);
    return result;
}

const logical_tensor* find_by_id(const tensor_list& tensors, std::size_t id) {
    const auto tensor = std::ranges::find(tensors, id, &logical_tensor::id);
    return tensor == tensors.end() ? nullptr : &*tensor;
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
    op.axes = value_of<std::vector<std::int64_t>>(record, abi::attr_axes).value_or(op.axes);
    op.keeps_dims = value_of<bool>(record, abi::attr_keep_dims).value_or(false);
    for (std::int64_t& d : op.order) // may count from the end
        if (d < 0) d += static_cast<std::int64_t>(op.order.size());
    for (const auto& input : record.inputs) op.inputs.push_back(as_described(input));
    for (const auto& output : record.outputs) op.outputs.push_back(as_described(output));
    return op;
}

} // namespace maskwise::onednn
