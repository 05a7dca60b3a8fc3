#include "fusion_graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

namespace maskwise::ort {
namespace {

using graph::op_kind;

struct known_operator {
    std::string_view type;
    op_kind kind;
    std::size_t inputs; // number of inputs; the operator has one output
};
constexpr known_operator known_operators[] = {
#define MASKWISE_ROW_BINARY(name, reversed_operands, onednn, onnx) {onnx, op_kind::name, 2},
#define MASKWISE_ROW_UNARY(name, onednn, onnx, ...) {onnx, op_kind::name, 1},
#include "kernel/rows/operators.inc"
    {"Where", op_kind::select, 3},
    {"Softmax", op_kind::soft_max, 1},
    {"MatMul", op_kind::mat_mul, 2},
    {"Transpose", op_kind::static_transpose, 1},
};

op_kind kind_of(const node& node) {
    const auto* const entry = std::ranges::find(known_operators, node.type, &known_operator::type);
    const bool fits = entry != std::end(known_operators) && node.is_complete() &&
                      node.inputs.size() == entry->inputs && node.outputs.size() == 1 &&
                      !node.has_too_many_dims();
    return fits ? entry->kind : op_kind::other;
}

// Presents f16 as f32. ONNX Runtime computes f16 operators in f32 between casts and removes
// adjacent casts, so it does not round between two such operators.
graph::logical_tensor tensor_of(const value& value) {
    graph::logical_tensor tensor;
    tensor.id = reinterpret_cast<std::size_t>(&value);
    tensor.type = value.type == data_type::f16 ? data_type::f32 : value.type;
    tensor.rank_known = value.extents.has_value();
    if (value.extents) tensor.extents = *value.extents;
    std::ranges::replace(tensor.extents, -1, graph::unknown_extent);
    if (value.is_constant) tensor.property = graph::property_kind::constant;
    return tensor;
}

// Returns nullopt unless alpha is positive and finite. ONNX Runtime returns zeros unchanged.
// Maskwise, like oneDNN, multiplies zeros by alpha. Only a positive and finite alpha keeps zeros
// unchanged.
std::optional<std::array<float, 2>> slope_of(const node& leaky_relu) {
    const auto attribute = leaky_relu.attribute<float>("alpha", ORT_OP_ATTR_FLOAT);
    const float alpha = attribute ? attribute->front() : 0.01F;
    if (!(alpha > 0) || std::isinf(alpha)) return std::nullopt;
    return std::array{alpha, 0.0F};
}

std::int64_t axis_of(const node& soft_max) {
    const auto attribute = soft_max.attribute<std::int64_t>("axis", ORT_OP_ATTR_INT);
    return attribute ? attribute->front() : soft_max.since_version < 13 ? 1 : -1;
}

std::vector<std::int64_t> order_of(const node& transpose) {
    if (auto attribute = transpose.attribute<std::int64_t>("perm", ORT_OP_ATTR_INTS))
        return std::move(*attribute); // the matcher checks that it is a permutation
    const dims extents = transpose.input(0).extents.value_or(dims{});
    std::vector<std::int64_t> reversed(extents.begin(), extents.end());
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return reversed;
}

graph::op op_of(const node& node, op_kind kind) {
    graph::op op;
    op.kind = kind;
    op.name = node.name;
    if (kind == op_kind::leaky_relu) op.constants = slope_of(node);
    if (kind == op_kind::soft_max) op.axis = axis_of(node);
    if (kind == op_kind::static_transpose) op.order = order_of(node);
    for (const value* const input : node.inputs) op.inputs.push_back(tensor_of(*input));
    op.outputs.push_back(tensor_of(node.result()));
    return op;
}

// Returns the nodes IsNaN and Where of Where(IsNaN(y), 0, y), where y is the result of the Softmax.
// PyTorch's exporter writes these nodes. Empty unless they are the only readers of y.
std::vector<const node*> nan_to_zero_nodes(const node& soft_max) {
    const auto& readers = soft_max.result().readers;
    if (soft_max.result().is_output || readers.size() != 2) return {};
    const bool is_nan_first = readers[0].node->is("IsNaN");
    const node& is_nan = *readers[is_nan_first ? 0 : 1].node;
    const reader where = readers[is_nan_first ? 1 : 0];
    if (!is_nan.is("IsNaN") || !where.node->is("Where") || where.input != 2 ||
        !where.node->input(1).is_zero() || !where.node->is_complete() || is_nan.result().is_output)
        return {};
    const auto& is_nan_readers = is_nan.result().readers;
    if (is_nan_readers.size() != 1 || is_nan_readers[0].node != where.node ||
        is_nan_readers[0].input != 0)
        return {};
    return {&is_nan, where.node};
}

bool is_free(const node* node) {
    return node->provider.empty();
}

} // namespace

fusion_ops::fusion_ops(const model_graph& model) {
    std::set<const node*> covered;
    const auto add = [&](graph::op op, const std::vector<const node*>& replaced) {
        covered.insert(replaced.begin(), replaced.end());
        if (op.outputs[0].type != data_type::f32) return;
        op.id = operators.size();
        operators.push_back(std::move(op));
        nodes.push_back(replaced);
    };
    for (const node& node : model.nodes()) {
        if (kind_of(node) != op_kind::soft_max || !is_free(&node)) continue;
        graph::op op = op_of(node, op_kind::soft_max);
        std::vector<const struct node*> replaced{&node};
        if (const auto others = nan_to_zero_nodes(node);
            !others.empty() && std::ranges::all_of(others, is_free)) {
            replaced.insert(replaced.end(), others.begin(), others.end());
            op.mode = "nan_as_zero";
            op.outputs[0] = tensor_of(others.back()->result());
        }
        add(std::move(op), replaced);
    }
    if (operators.empty()) return;
    for (const node& node : model.nodes())
        if (const op_kind kind = kind_of(node);
            kind != op_kind::other && !covered.contains(&node) && is_free(&node))
            add(op_of(node, kind), {&node});
}

// A value also leaves if it has other consumers: nodes of an unknown kind, nodes of a provider, or
// nodes inside an If or a Loop.
bool fusion_match_policy::leaves(std::size_t value) const {
    if (maker(value) == nullptr) return true; // an outer graph may read the value
    return value_of(value).is_output ||
           value_of(value).readers.size() != values().users(value).size();
}

} // namespace maskwise::ort
