#include "onednn/record/translate_op.hpp"

#include "onednn/record/translate.hpp"

namespace maskwise::onednn {
namespace {

graph::op_kind kind_from_abi(int kind) {
    switch (kind) {
#define MASKWISE_NODE(name, arguments)                                                             \
    case abi::op_kind_##name:                                                                      \
        return graph::op_kind::name;
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
    case abi::op_kind_soft_max:
        return graph::op_kind::soft_max;
    case abi::op_kind_gen_index:
        return graph::op_kind::gen_index;
    default:
        return graph::op_kind::other;
    }
}

std::optional<std::string> text_attribute(const op_record& record, int name) {
    const attribute* found = record.find(name);
    const auto* text = found != nullptr ? std::get_if<std::string>(found) : nullptr;
    return text != nullptr ? std::optional(*text) : std::nullopt;
}

std::optional<std::int64_t> number_attribute(const op_record& record, int name) {
    const attribute* found = record.find(name);
    const auto* numbers =
        found != nullptr ? std::get_if<std::vector<std::int64_t>>(found) : nullptr;
    return numbers != nullptr && numbers->size() == 1 ? std::optional(numbers->front())
                                                      : std::nullopt;
}

// The attribute where it is one number of that type.
template <class Number>
std::optional<float> one_number(const op_record& record, int name) {
    const attribute* found = record.find(name);
    const auto* numbers = found != nullptr ? std::get_if<std::vector<Number>>(found) : nullptr;
    return numbers != nullptr && numbers->size() == 1
               ? std::optional(static_cast<float>(numbers->front()))
               : std::nullopt;
}

std::optional<std::array<float, 2>> numbers_of(const op_record& record) {
    std::optional<float> first, second = 0.0F;
    if (record.kind == abi::op_kind_leaky_relu) {
        first = one_number<float>(record, abi::attr_alpha);
    } else if (record.kind == abi::op_kind_clamp) {
        first = one_number<float>(record, abi::attr_min);
        second = one_number<float>(record, abi::attr_max);
    } else if (record.kind == abi::op_kind_quantize) {
        first = one_number<float>(record, abi::attr_scales);
        if (record.find(abi::attr_zps) != nullptr)
            second = one_number<std::int64_t>(record, abi::attr_zps);
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

graph::op translate(const op_record& record) {
    graph::op op;
    op.id = record.id;
    op.kind = kind_from_abi(record.kind);
    op.name = !record.name.empty() ? std::string(record.name)
                                   : (op.kind == graph::op_kind::select ? "Select_" : "op_") +
                                         std::to_string(record.id);
    op.auto_broadcast = text_attribute(record, abi::attr_auto_broadcast);
    op.mode = text_attribute(record, abi::attr_mode);
    op.axis = number_attribute(record, abi::attr_axis);
    op.numbers = numbers_of(record);
    for (const auto& input : record.inputs) op.inputs.push_back(as_described(input));
    for (const auto& output : record.outputs) op.outputs.push_back(as_described(output));
    return op;
}

} // namespace maskwise::onednn
