#include "fusion_graph.hpp"

#include "element_types.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

namespace maskwise::ort {
namespace {

using graph::op_kind;

struct known_operator {
    std::string_view type;
    op_kind kind;
    std::size_t inputs; // with one output
};
constexpr known_operator known_operators[] = {
#define MASKWISE_ROW_BINARY(name, turned, onnx) {onnx, op_kind::name, 2},
#define MASKWISE_ROW_UNARY(name, onnx) {onnx, op_kind::name, 1},
#include "kernel/row_operators.inc"
    {"Where", op_kind::select, 3},
    {"Softmax", op_kind::soft_max, 1},
    {"MatMul", op_kind::mat_mul, 2},
    {"Transpose", op_kind::static_transpose, 1},
};

op_kind kind_of(const runtime& with, const abi::node* node) {
    const auto* const found = std::ranges::find_if(
        known_operators, [&](const auto& known) { return is_operator(with, node, known.type); });
    if (found == std::end(known_operators) || !is_complete(with, node) ||
        inputs_of(with, node).size() != found->inputs || outputs_of(with, node).size() != 1 ||
        has_too_many_dims(with, node))
        return op_kind::other;
    return found->kind;
}

bool is_float(data_type type) {
    return type == data_type::f32 || type == data_type::f16;
}

// Chains of f16 are searched as if they were f32: between two operators ONNX Runtime rounds
// nothing, since it has casts to f32 around each and takes out those that meet.
graph::logical_tensor tensor_of(const runtime& with, const abi::value_info* value) {
    const value_facts facts = facts_of(with, value);
    graph::logical_tensor tensor;
    tensor.id = reinterpret_cast<std::size_t>(value);
    const data_type type = type_of(facts.element);
    tensor.type = is_float(type) ? data_type::f32 : type;
    tensor.rank_known = facts.extents.has_value();
    if (facts.extents) tensor.extents = *facts.extents;
    std::ranges::replace(tensor.extents, -1, graph::unknown_extent);
    if (is_constant(with, value)) tensor.property = graph::property_kind::constant;
    return tensor;
}

// None where the product of alpha and a zero is not that zero: a row's operator, as oneDNN's, takes
// it, and ONNX Runtime's keeps zeros.
std::optional<std::array<float, 2>> slope_of(const runtime& with, const abi::node* node) {
    const float alpha = float_attribute_of(with, node, "alpha").value_or(0.01F);
    if (!(alpha > 0) || std::isinf(alpha)) return std::nullopt;
    return std::array{alpha, 0.0F};
}

graph::op op_of(const runtime& with, const abi::node* node, op_kind kind) {
    graph::op op;
    op.kind = kind;
    op.name = name_of(with, node);
    if (kind == op_kind::leaky_relu) op.constants = slope_of(with, node);
    if (kind == op_kind::soft_max)
        op.axis =
            attribute_of(with, node, "axis").value_or(since_version(with, node) < 13 ? 1 : -1);
    for (const abi::value_info* const input : inputs_of(with, node))
        op.inputs.push_back(tensor_of(with, input));
    if (kind == op_kind::static_transpose) {
        if (auto order = attributes_of(with, node, "perm")) // may be any numbers
            op.order = std::move(*order);
        else // reverses
            for (int d = op.inputs[0].extents.rank() - 1; d >= 0; --d) op.order.push_back(d);
    }
    op.outputs.push_back(tensor_of(with, output_of(with, node)));
    return op;
}

// IsNaN and Where(IsNaN(y), 0, y), where nobody else reads y: exporters put them behind a Softmax.
std::vector<const abi::node*> zeros_of_nan(const runtime& with, const abi::node* soft_max) {
    const auto readers = readers_of(with, soft_max);
    if (is_graph_output(with, output_of(with, soft_max)) || readers.size() != 2) return {};
    const bool first_asks = is_operator(with, readers[0].node, "IsNaN");
    const reader asks = readers[first_asks ? 0 : 1], takes = readers[first_asks ? 1 : 0];
    if (!is_operator(with, asks.node, "IsNaN") || !is_operator(with, takes.node, "Where") ||
        takes.input != 2 || !is_zero(with, input_of(with, takes.node, 1)) ||
        !is_complete(with, takes.node) || is_graph_output(with, output_of(with, asks.node)))
        return {};
    const auto answered = readers_of(with, asks.node);
    if (answered.size() != 1 || answered[0].node != takes.node || answered[0].input != 0) return {};
    return {asks.node, takes.node};
}

} // namespace

fusion_ops::fusion_ops(const runtime& with, const abi::graph* graph, const node_filter& is_free)
    : with_(with) {
    const auto nodes = nodes_of(with, graph);
    std::set<const abi::node*> added;
    for (const abi::node* const node : nodes) {
        if (kind_of(with, node) != op_kind::soft_max || !is_free(node)) continue;
        graph::op op = op_of(with, node, op_kind::soft_max);
        std::vector<const abi::node*> all{node};
        if (const auto more = zeros_of_nan(with, node);
            !more.empty() && std::ranges::all_of(more, is_free)) {
            all.insert(all.end(), more.begin(), more.end());
            op.mode = "nan_as_zero";
            op.outputs[0] = tensor_of(with, output_of(with, more.back()));
        }
        added.insert(all.begin(), all.end());
        add(std::move(op), std::move(all));
    }
    if (ops_.empty()) return;
    for (const abi::node* const node : nodes) {
        const op_kind kind = kind_of(with, node);
        if (kind == op_kind::other || added.contains(node) || !is_free(node)) continue;
        add(op_of(with, node, kind), {node});
    }
}

void fusion_ops::add(graph::op op, std::vector<const abi::node*> nodes) {
    if (op.outputs[0].type != data_type::f32) return;
    op.id = ops_.size();
    ops_.push_back(std::move(op));
    nodes_.push_back(std::move(nodes));
}

// Readers that are no operators here are others' or If's and Loop's own nodes.
bool fusion_rules::leaves(std::size_t value) const {
    if (maker(value) == nullptr) return true; // from outside, where nothing says who reads it
    return is_graph_output(with_, value_of(value)) ||
           reader_count(with_, value_of(value)) != values().users(value).size();
}

bool fusion_rules::comes_from_product(std::size_t value, int depth) const {
    const graph::op* const made_by = maker(value);
    if (made_by == nullptr || depth == 0) return false;
    if (made_by->kind == op_kind::mat_mul) return true;
    if (made_by->kind == op_kind::soft_max || made_by->kind == op_kind::static_transpose)
        return false;
    return std::ranges::any_of(made_by->inputs, [&](const graph::logical_tensor& input) {
        return comes_from_product(input.id, depth - 1);
    });
}

// Scores are not one number, and rather no constant, the result of a MatMul, and the larger shape.
std::optional<std::size_t> fusion_rules::row_of(const graph::op& user, std::size_t a,
                                                std::size_t b) const {
    if (a == b) return a;
    const auto badness = [&](std::size_t i) {
        constexpr int most_steps = 8;
        const graph::logical_tensor& input = user.inputs[i];
        const auto ones = std::ranges::count(input.extents, 1);
        return std::array<std::int64_t, 5>{
            graph::is_one_element(input), input.property == graph::property_kind::constant,
            !comes_from_product(input.id, most_steps),
            input.rank_known ? -input.extents.rank() : -max_rank, ones};
    };
    const std::size_t row = badness(a) <= badness(b) ? a : b;
    return graph::is_one_element(user.inputs[row]) ? std::nullopt : std::optional(row);
}

} // namespace maskwise::ort
