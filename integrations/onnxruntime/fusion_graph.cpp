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
    std::size_t inputs; // with one output
};
constexpr known_operator known_operators[] = {
#define MASKWISE_ROW_BINARY(name, turned, onednn, onnx) {onnx, op_kind::name, 2},
#define MASKWISE_ROW_UNARY(name, onednn, onnx, ...) {onnx, op_kind::name, 1},
#include "kernel/rows/operators.inc"
    {"Where", op_kind::select, 3},
    {"Softmax", op_kind::soft_max, 1},
    {"MatMul", op_kind::mat_mul, 2},
    {"Transpose", op_kind::static_transpose, 1},
};

op_kind kind_of(const node& of) {
    const auto* const found = std::ranges::find(known_operators, of.type, &known_operator::type);
    const bool fits = !of.type.empty() && found != std::end(known_operators) && of.is_complete() &&
                      of.inputs.size() == found->inputs && of.outputs.size() == 1 &&
                      !of.has_too_many_dims();
    return fits ? found->kind : op_kind::other;
}

// Chains of f16 are searched as if they were f32: between two operators ONNX Runtime rounds
// nothing, since it has casts to f32 around each and takes out those that meet.
graph::logical_tensor tensor_of(const value& of) {
    graph::logical_tensor tensor;
    tensor.id = reinterpret_cast<std::size_t>(&of);
    tensor.type = of.type == data_type::f16 ? data_type::f32 : of.type;
    tensor.rank_known = of.extents.has_value();
    if (of.extents) tensor.extents = *of.extents;
    std::ranges::replace(tensor.extents, -1, graph::unknown_extent);
    if (of.is_constant) tensor.property = graph::property_kind::constant;
    return tensor;
}

// None where the product of alpha and a zero is not that zero: a row's operator, as oneDNN's, takes
// it, and ONNX Runtime's keeps zeros.
std::optional<std::array<float, 2>> slope_of(const node& leaky_relu) {
    const auto given = leaky_relu.attribute<float>("alpha", ORT_OP_ATTR_FLOAT);
    const float alpha = given ? given->front() : 0.01F;
    if (!(alpha > 0) || std::isinf(alpha)) return std::nullopt;
    return std::array{alpha, 0.0F};
}

std::int64_t axis_of(const node& soft_max) {
    const auto given = soft_max.attribute<std::int64_t>("axis", ORT_OP_ATTR_INT);
    return given ? given->front() : soft_max.since_version < 13 ? 1 : -1;
}

std::vector<std::int64_t> order_of(const node& transpose) {
    if (auto given = transpose.attribute<std::int64_t>("perm", ORT_OP_ATTR_INTS))
        return std::move(*given); // may be any numbers
    const dims extents = transpose.input(0).extents.value_or(dims{});
    std::vector<std::int64_t> reversed(extents.begin(), extents.end());
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return reversed;
}

graph::op op_of(const node& of, op_kind kind) {
    graph::op op;
    op.kind = kind;
    op.name = of.name;
    if (kind == op_kind::leaky_relu) op.constants = slope_of(of);
    if (kind == op_kind::soft_max) op.axis = axis_of(of);
    if (kind == op_kind::static_transpose) op.order = order_of(of);
    for (const value* const input : of.inputs) op.inputs.push_back(tensor_of(*input));
    op.outputs.push_back(tensor_of(of.result()));
    return op;
}

// IsNaN and Where(IsNaN(y), 0, y), where nobody else reads y: exporters put them behind a Softmax.
std::vector<const node*> zeros_of_nan(const node& soft_max) {
    const auto& readers = soft_max.result().readers;
    if (soft_max.result().is_output || readers.size() != 2) return {};
    const bool first_asks = readers[0].by->is("IsNaN");
    const node& asks = *readers[first_asks ? 0 : 1].by;
    const reader takes = readers[first_asks ? 1 : 0];
    if (!asks.is("IsNaN") || !takes.by->is("Where") || takes.input != 2 ||
        !takes.by->input(1).is_zero() || !takes.by->is_complete() || asks.result().is_output)
        return {};
    const auto& answered = asks.result().readers;
    if (answered.size() != 1 || answered[0].by != takes.by || answered[0].input != 0) return {};
    return {&asks, takes.by};
}

bool is_free(const node* each) {
    return each->provider.empty();
}

} // namespace

fusion_ops::fusion_ops(const model_graph& from) {
    std::set<const node*> added;
    const auto add = [&](graph::op op, const std::vector<const node*>& stands_for) {
        added.insert(stands_for.begin(), stands_for.end());
        if (op.outputs[0].type != data_type::f32) return;
        op.id = all.size();
        all.push_back(std::move(op));
        nodes.push_back(stands_for);
    };
    for (const node& each : from.nodes()) {
        if (kind_of(each) != op_kind::soft_max || !is_free(&each)) continue;
        graph::op op = op_of(each, op_kind::soft_max);
        std::vector<const node*> stands_for{&each};
        if (const auto more = zeros_of_nan(each);
            !more.empty() && std::ranges::all_of(more, is_free)) {
            stands_for.insert(stands_for.end(), more.begin(), more.end());
            op.mode = "nan_as_zero";
            op.outputs[0] = tensor_of(more.back()->result());
        }
        add(std::move(op), stands_for);
    }
    if (all.empty()) return;
    for (const node& each : from.nodes())
        if (const op_kind kind = kind_of(each);
            kind != op_kind::other && !added.contains(&each) && is_free(&each))
            add(op_of(each, kind), {&each});
}

// Readers that are no operators here are others' or If's and Loop's own nodes.
bool fusion_rules::leaves(std::size_t value) const {
    if (maker(value) == nullptr) return true; // from outside, where nothing says who reads it
    return value_of(value).is_output ||
           value_of(value).readers.size() != values().users(value).size();
}

} // namespace maskwise::ort
