#include "model_ops.hpp"

#include "element_types.hpp"

#include "tensor/data_type.hpp"

#include <openvino/op/constant.hpp>
#include <openvino/op/is_nan.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/select.hpp>
#include <openvino/op/softmax.hpp>
#include <openvino/op/transpose.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;
using graph::op_kind;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
// On the way to query and key: the chain, the weights' product, zeros of NaN, and what scales and
// turns.
constexpr std::size_t most_steps = 2 * max_row_actions;

// Those that ONNX defines alike have OpenVINO's name with a capital.
struct named_kind {
    std::string_view name, onnx;
    op_kind kind;
};
constexpr named_kind elementwise[] = {
#define MASKWISE_ROW_BINARY(name, turned, onednn, onnx) {#name, onnx, op_kind::name},
#define MASKWISE_ROW_UNARY(name, onednn, onnx, ...) {#name, onnx, op_kind::name},
#include "kernel/rows/operators.inc"
};

bool is_named(std::string_view type, std::string_view name) {
    return type.size() == name.size() && type[0] + ('a' - 'A') == name[0] &&
           type.substr(1) == name.substr(1);
}

ov::Node& maker_of(const ov::Node& node, std::size_t input) {
    return *node.get_input_node_ptr(input);
}

std::size_t id_of(const ov::Output<ov::Node>& value) {
    return reinterpret_cast<std::size_t>(&value.get_tensor());
}

// A constant +0 of at most one dimension: it leaves the shape of what it is combined with.
bool is_zero(const ov::Node& node) {
    const auto* constant = ov::as_type<const op::v0::Constant>(&node);
    if (constant == nullptr || constant->get_shape().size() > 1 ||
        ov::shape_size(constant->get_shape()) != 1)
        return false;
    const auto value = constant->cast_vector<float>()[0];
    return value == 0 && !std::signbit(value);
}

// Select(IsNaN(y), 0, y) of a Softmax's y: exporters put it there.
bool is_zero_of_nan(const ov::Node& node) {
    return ov::is_type<op::v1::Select>(&node) && is_softmax(maker_of(node, 2)) &&
           ov::is_type<op::v10::IsNaN>(&maker_of(node, 0)) && is_zero(maker_of(node, 1)) &&
           maker_of(node, 0).input_value(0) == node.input_value(2) &&
           node.input_value(2).get_target_inputs().size() == 2 &&
           node.input_value(0).get_target_inputs().size() == 1;
}

bool makes_weights(const ov::Node& node) {
    return is_softmax(node) || is_zero_of_nan(node);
}

std::optional<std::vector<std::int64_t>> order_of(const ov::Node& transpose) {
    const auto* const order = ov::as_type<const op::v0::Constant>(&maker_of(transpose, 1));
    return order == nullptr ? std::nullopt : std::optional(order->cast_vector<std::int64_t>());
}

// Of a node in front of the end. A product that reads weights does not make scores.
op_kind kind_of(const ov::Node& node) {
    if (!computes_in_f32(type_of(node.get_output_element_type(0)))) return op_kind::other;
    if (ov::is_type<op::v1::Select>(&node)) return op_kind::select;
    if (ov::is_type<op::v0::MatMul>(&node))
        return makes_weights(maker_of(node, 0)) ? op_kind::other : op_kind::mat_mul;
    if (is_softmax(node)) return op_kind::soft_max;
    if (ov::is_type<op::v1::Transpose>(&node))
        return order_of(node) ? op_kind::static_transpose : op_kind::other;
    const auto* const found = std::ranges::find_if(elementwise, [&](const named_kind& each) {
        return !each.onnx.empty() && is_named(node.get_type_name(), each.name);
    });
    return found == std::end(elementwise) ? op_kind::other : found->kind;
}

std::optional<std::int64_t> axis_of(const ov::Node& node) {
    if (const auto* v1 = ov::as_type<const op::v1::Softmax>(&node))
        return static_cast<std::int64_t>(v1->get_axis());
    if (const auto* v8 = ov::as_type<const op::v8::Softmax>(&node)) return v8->get_axis();
    return std::nullopt;
}

std::string broadcast_of(const ov::Node& node) {
    const auto& rule = node.get_autob().m_type;
    return rule == op::AutoBroadcastType::PDPD ? "pdpd" : "numpy"; // by `none` shapes are equal
}

graph::op op_of(const ov::Node& node, op_kind kind) {
    graph::op made;
    made.id = reinterpret_cast<std::size_t>(&node);
    made.kind = kind;
    made.name = node.get_friendly_name();
    made.axis = axis_of(node);
    made.auto_broadcast = broadcast_of(node);
    if (kind == op_kind::static_transpose) made.order = *order_of(node);
    if (const auto* product = ov::as_type<const op::v0::MatMul>(&node)) {
        made.transpose_a = product->get_transpose_a();
        made.transpose_b = product->get_transpose_b();
    }
    return made;
}

} // namespace

bool is_softmax(const ov::Node& node) {
    return ov::is_type<op::v1::Softmax>(&node) || ov::is_type<op::v8::Softmax>(&node);
}

bool has_scale(const op::v13::ScaledDotProductAttention& node) {
    constexpr std::size_t scale = 4;
    return node.get_input_size() > scale;
}

model_ops::model_ops(ov::Node& end, const node_set& claimed) : end_(&end), claimed_(claimed) {
    if (auto* whole = ov::as_type<op::v13::ScaledDotProductAttention>(&end))
        add_attention(*whole);
    else
        add_node(end, is_softmax(end) ? op_kind::soft_max : op_kind::mat_mul, 0);
    add_result(end);
}

std::shared_ptr<ov::Node> model_ops::result_node(std::size_t value) const {
    const auto found = results_.find(value);
    return found == results_.end() ? nullptr : found->second;
}

// The plugin computes in f32, or in the type that it has been told to, whatever the model says: it
// rounds between operators in none of them but the last.
graph::logical_tensor model_ops::describe(const ov::Output<ov::Node>& value) {
    graph::logical_tensor described;
    described.id = id_of(value);
    described.type = type_of(value.get_element_type());
    if (computes_in_f32(described.type)) described.type = data_type::f32;
    const ov::PartialShape& shape = value.get_partial_shape();
    described.rank_known = shape.rank().is_static() && shape.rank().get_length() <= max_rank;
    if (described.rank_known)
        for (const ov::Dimension& extent : shape)
            described.extents.push_back(extent.is_static() ? extent.get_length()
                                                           : graph::unknown_extent);
    if (ov::is_type<op::v0::Constant>(value.get_node()))
        described.property = graph::property_kind::constant;
    if (value.get_target_inputs().size() != 1) shared_.insert(described.id);
    return described;
}

// `depth` is the number of nodes between this one and the end.
graph::logical_tensor model_ops::read(ov::Node& node, std::size_t input, std::size_t depth) {
    graph::logical_tensor value = describe(node.input_value(input));
    sources_.emplace(value.id, source{&node, input});
    add_maker(node.input_value(input), depth + 1);
    return value;
}

graph::logical_tensor model_ops::number(float value) {
    graph::logical_tensor described;
    described.id = own_id();
    described.type = data_type::f32;
    described.rank_known = true;
    sources_.emplace(described.id, source{.number = value});
    return described;
}

// The rank of `other`, with unknown extents.
graph::logical_tensor model_ops::like(const graph::logical_tensor& other) {
    graph::logical_tensor described = other;
    described.id = own_id();
    std::ranges::fill(described.extents, graph::unknown_extent);
    return described;
}

void model_ops::add(graph::op op, node_set stands_for) {
    nodes_.emplace(op.id, std::move(stands_for));
    ops_.push_back(std::move(op));
}

void model_ops::add_node(ov::Node& node, op_kind kind, std::size_t depth) {
    graph::op op = op_of(node, kind);
    const bool has_order = kind == op_kind::static_transpose;
    const std::size_t inputs = has_order ? 1 : node.get_input_size();
    for (std::size_t i = 0; i < inputs; ++i) op.inputs.push_back(read(node, i, depth));
    op.outputs = {describe(node.output(0))};
    add(std::move(op), {&node});
}

void model_ops::add_zeros_of_nan(ov::Node& select, std::size_t depth) {
    ov::Node& soft_max = maker_of(select, 2);
    graph::op op = op_of(soft_max, op_kind::soft_max);
    op.mode = "nan_as_zero";
    op.inputs = {read(soft_max, 0, depth + 1)};
    op.outputs = {describe(select.output(0))};
    add(std::move(op), {&soft_max, &maker_of(select, 0), &select});
}

// An operator of which no node is alone the maker.
graph::logical_tensor model_ops::add_own(op_kind kind, std::vector<graph::logical_tensor> inputs,
                                         std::optional<graph::logical_tensor> output) {
    graph::op op;
    op.id = own_id();
    op.kind = kind;
    if (!output) output = like(inputs[0]);
    op.inputs = std::move(inputs);
    op.outputs = {*output};
    if (kind == op_kind::soft_max) op.axis = -1;
    add(std::move(op), {end_});
    return *output;
}

// Query times key, the scale, the mask, SoftMax, and the product with value; nothing of what the
// kernels do not have.
void model_ops::add_attention(op::v13::ScaledDotProductAttention& node) {
    constexpr std::size_t mask = 3, scale = 4, sink = 5;
    if (node.get_input_size() > sink) return;
    const auto query = read(node, 0, 0), key = read(node, 1, 0), value = read(node, 2, 0);
    auto scores = add_own(op_kind::mat_mul, {query, key});
    ops_.back().transpose_b = true;
    if (has_scale(node)) scores = add_own(op_kind::multiply, {scores, read(node, scale, 0)});
    if (node.get_input_size() > mask && !node.get_causal()) {
        const auto given = read(node, mask, 0);
        scores =
            given.type == data_type::boolean
                ? add_own(op_kind::select, {given, scores, number(minus_infinity)}, like(scores))
                : add_own(op_kind::add, {scores, given});
    }
    scores = add_own(op_kind::soft_max, {scores});
    add_own(op_kind::mat_mul, {scores, value}, describe(node.output(0)));
}

void model_ops::add_maker(const ov::Output<ov::Node>& value, std::size_t depth) {
    ov::Node& maker = *value.get_node();
    if (depth > most_steps || maker.get_output_size() != 1 || claimed_.contains(&maker) ||
        value.get_target_inputs().size() != 1)
        return;
    if (is_zero_of_nan(maker)) return add_zeros_of_nan(maker, depth);
    if (const op_kind kind = kind_of(maker); kind != op_kind::other) add_node(maker, kind, depth);
}

void model_ops::add_result(ov::Node& node) {
    results_.emplace(id_of(node.output(0)), node.shared_from_this());
    const auto readers = node.output(0).get_target_inputs();
    if (readers.size() != 1 || readers.begin()->get_index() != 0) return;
    ov::Node& reader = *readers.begin()->get_node();
    if (claimed_.contains(&reader) || kind_of(reader) != op_kind::static_transpose) return;
    graph::op op = op_of(reader, op_kind::static_transpose);
    op.inputs = {describe(node.output(0))};
    op.outputs = {describe(reader.output(0))};
    add(std::move(op), {&reader});
    add_result(reader);
}

} // namespace maskwise::openvino
