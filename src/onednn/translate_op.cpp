#include "onednn/translate_op.hpp"

#include "onednn/translate.hpp"

namespace maskwise::onednn {
namespace {

graph::op_kind kind_from_abi(int kind) {
    switch (kind) {
    case abi::op_kind_select:
        return graph::op_kind::select;
    case abi::op_kind_add:
        return graph::op_kind::add;
    case abi::op_kind_subtract:
        return graph::op_kind::subtract;
    case abi::op_kind_multiply:
        return graph::op_kind::multiply;
    case abi::op_kind_divide:
        return graph::op_kind::divide;
    case abi::op_kind_soft_max:
        return graph::op_kind::soft_max;
    case abi::op_kind_gen_index:
        return graph::op_kind::gen_index;
    case abi::op_kind_greater_equal:
        return graph::op_kind::greater_equal;
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

} // namespace

graph::op translate(const op_record& record) {
    graph::op op;
    op.id = record.id;
    op.kind = kind_from_abi(record.kind);
    op.name =
        record.name.empty() ? "Select_" + std::to_string(record.id) : std::string(record.name);
    op.auto_broadcast = text_attribute(record, abi::attr_auto_broadcast);
    op.mode = text_attribute(record, abi::attr_mode);
    op.axis = number_attribute(record, abi::attr_axis);
    for (const auto& input : record.inputs) op.inputs.push_back(from_abi(input));
    for (const auto& output : record.outputs) op.outputs.push_back(from_abi(output));
    return op;
}

} // namespace maskwise::onednn
