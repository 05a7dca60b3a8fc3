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

using graph::op_kind;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
// Upper bound on the nodes from the end back to query and key: the MatMul with value, NaN to zero,
// element-wise nodes, scaling and Transposes.
constexpr std::size_t max_depth = 2 * max_row_actions;

// The row operators that OpenVINO defines in the same way. OpenVINO capitalizes their names.
struct named_kind {
    std::string_view name;
    op_kind kind;
};
constexpr named_kind elementwise[] = {
#define MASKWISE_ROW_BINARY(name, ...) {#name, op_kind::name},
#define MASKWISE_ROW_UNARY(name, ...) {#name, op_kind::name},
#include "kernel/rows/operators.inc"
};

bool is_named(std::string_view type, std::string_view name) {
    return type.size() == name.size() && type[0] + ('a' - 'A') == name[0] &&
           type.substr(1) == name.substr(1);
}

ov::Node& producer_of(const ov::Node& node, std::size_t input) {
    return *node.get_input_node_ptr(input);
}

std::size_t id_of(const ov::Output<ov::Node>& value) {
    return reinterpret_cast<std::size_t>(&value.get_tensor());
}

// Whether the node is a constant +0 with one element and rank 0 or 1.
bool is_zero(const ov::Node& node) {
    const auto* constant = ov::as_type<const ov::op::v0::Constant>(&node);
    if (constant == nullptr || constant->get_shape().size() > 1 ||
        ov::shape_size(constant->get_shape()) != 1)
        return false;
    const auto value = constant->cast_vector<float>()[0];
    return value == 0 && !std::signbit(value);
}

// Whether the node is Select(IsNaN(y), 0, y), as written by PyTorch's exporter, where y is the
// result of a Softmax without other consumers.
bool is_nan_to_zero(const ov::Node& node) {
    return ov::is_type<ov::op::v1::Select>(&node) && is_softmax(producer_of(node, 2)) &&
           ov::is_type<ov::op::v10::IsNaN>(&producer_of(node, 0)) &&
           is_zero(producer_of(node, 1)) &&
           producer_of(node, 0).input_value(0) == node.input_value(2) &&
           node.input_value(2).get_target_inputs().size() == 2 &&
           node.input_value(0).get_target_inputs().size() == 1;
}

bool produces_weights(const ov::Node& node) {
    return is_softmax(node) || is_nan_to_zero(node);
}

std::optional<std::vector<std::int64_t>> order_of(const ov::Node& transpose) {
    const auto* const order = ov::as_type<const ov::op::v0::Constant>(&producer_of(transpose, 1));
    return order == nullptr ? std::nullopt : std::optional(order->cast_vector<std::int64_t>());
}

// Returns the kind of a node before the end. A MatMul after a Softmax is `other`, because it does
// not compute scores.
op_kind kind_of(const ov::Node& node) {
    if (!computes_in_f32(type_of(node.get_output_element_type(0)))) return op_kind::other;
    if (ov::is_type<ov::op::v1::Select>(&node)) return op_kind::select;
    if (ov::is_type<ov::op::v0::MatMul>(&node))
        return produces_weights(producer_of(node, 0)) ? op_kind::other : op_kind::mat_mul;
    if (is_softmax(node)) return op_kind::soft_max;
    if (ov::is_type<ov::op::v1::Transpose>(&node))
        return order_of(node) ? op_kind::static_transpose : op_kind::other;
    const auto* const entry = std::ranges::find_if(elementwise, [&](const named_kind& candidate) {
        return is_named(node.get_type_name(), candidate.name);
    });
    return entry == std::end(elementwise) ? op_kind::other : entry->kind;
}

std::optional<std::int64_t> axis_of(const ov::Node& node) {
    if (const auto* v1 = ov::as_type<const ov::op::v1::Softmax>(&node))
        return static_cast<std::int64_t>(v1->get_axis());
    if (const auto* v8 = ov::as_type<const ov::op::v8::Softmax>(&node)) return v8->get_axis();
    return std::nullopt;
}

std::string broadcast_of(const ov::Node& node) {
    const auto& rule = node.get_autob().m_type;
    // `none` requires equal shapes, for which NumPy's rule is the same.
    return rule == ov::op::AutoBroadcastType::PDPD ? "pdpd" : "numpy";
}

graph::op op_of(const ov::Node& node, op_kind kind) {
    graph::op op;
    op.id = reinterpret_cast<std::size_t>(&node);
    op.kind = kind;
    op.name = node.get_friendly_name();
    op.axis = axis_of(node);
    op.auto_broadcast = broadcast_of(node);
    if (kind == op_kind::static_transpose) op.order = *order_of(node);
    if (const auto* product = ov::as_type<const ov::op::v0::MatMul>(&node)) {
        op.transpose_a = product->get_transpose_a();
        op.transpose_b = product->get_transpose_b();
    }
    return op;
}

} // namespace

bool is_softmax(const ov::Node& node) {
    return ov::is_type<ov::op::v1::Softmax>(&node) || ov::is_type<ov::op::v8::Softmax>(&node);
}

bool has_scale(const ov::op::v13::ScaledDotProductAttention& node) {
    constexpr std::size_t scale = 4;
    return node.get_input_size() > scale;
}

model_ops::model_ops(ov::Node& end, const node_set& claimed) : end_(&end), claimed_(claimed) {
    if (auto* whole = ov::as_type<ov::op::v13::ScaledDotProductAttention>(&end))
        add_attention(*whole);
    else
        add_node(end, is_softmax(end) ? op_kind::soft_max : op_kind::mat_mul, 0);
    add_result(end);
}

std::shared_ptr<ov::Node> model_ops::result_node(std::size_t value) const {
    const auto entry = results_.find(value);
    return entry == results_.end() ? nullptr : entry->second;
}

// Float types become f32: the plugin computes in f32 or in the type of its precision hint, and
// rounds only the last result to the model's type.
graph::logical_tensor model_ops::describe(const ov::Output<ov::Node>& value) {
    graph::logical_tensor tensor;
    tensor.id = id_of(value);
    tensor.type = type_of(value.get_element_type());
    if (computes_in_f32(tensor.type)) tensor.type = data_type::f32;
    const ov::PartialShape& shape = value.get_partial_shape();
    tensor.rank_known = shape.rank().is_static() && shape.rank().get_length() <= max_rank;
    if (tensor.rank_known)
        for (const ov::Dimension& extent : shape)
            tensor.extents.push_back(extent.is_static() ? extent.get_length()
                                                        : graph::unknown_extent);
    if (ov::is_type<ov::op::v0::Constant>(value.get_node()))
        tensor.property = graph::property_kind::constant;
    if (value.get_target_inputs().size() != 1) shared_.insert(tensor.id);
    return tensor;
}

// `depth` counts the nodes from this node to the end.
graph::logical_tensor model_ops::read(ov::Node& node, std::size_t input, std::size_t depth) {
    graph::logical_tensor value = describe(node.input_value(input));
    sources_.emplace(value.id, value_source{&node, input});
    add_producer(node.input_value(input), depth + 1);
    return value;
}

graph::logical_tensor model_ops::number(float value) {
    graph::logical_tensor tensor;
    tensor.id = synthetic_id();
    tensor.type = data_type::f32;
    tensor.rank_known = true;
    sources_.emplace(tensor.id, value_source{.number = value});
    return tensor;
}

// Returns a new tensor with the type and rank of `other`, and unknown extents.
graph::logical_tensor model_ops::like(const graph::logical_tensor& other) {
    graph::logical_tensor tensor = other;
    tensor.id = synthetic_id();
    std::ranges::fill(tensor.extents, graph::unknown_extent);
    return tensor;
}

void model_ops::add(graph::op op, node_set nodes) {
    nodes_.emplace(op.id, std::move(nodes));
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

void model_ops::add_nan_to_zero(ov::Node& select, std::size_t depth) {
    ov::Node& soft_max = producer_of(select, 2);
    graph::op op = op_of(soft_max, op_kind::soft_max);
    op.mode = "nan_as_zero";
    op.inputs = {read(soft_max, 0, depth + 1)};
    op.outputs = {describe(select.output(0))};
    add(std::move(op), {&soft_max, &producer_of(select, 0), &select});
}

// Adds an operator that is only a part of `end`.
graph::logical_tensor model_ops::add_synthetic(op_kind kind,
                                               std::vector<graph::logical_tensor> inputs,
                                               std::optional<graph::logical_tensor> output) {
    graph::op op;
    op.id = synthetic_id();
    op.kind = kind;
    if (!output) output = like(inputs[0]);
    op.inputs = std::move(inputs);
    op.outputs = {*output};
    if (kind == op_kind::soft_max) op.axis = -1;
    add(std::move(op), {end_});
    return *output;
}

// Adds query times key, the scale, the mask, SoftMax and the product with value. Adds nothing for a
// sink, which is not supported here.
void model_ops::add_attention(ov::op::v13::ScaledDotProductAttention& node) {
    constexpr std::size_t mask = 3, scale = 4, sink = 5;
    if (node.get_input_size() > sink) return;
    const auto query = read(node, 0, 0), key = read(node, 1, 0), value = read(node, 2, 0);
    auto scores = add_synthetic(op_kind::mat_mul, {query, key});
    ops_.back().transpose_b = true;
    if (has_scale(node)) scores = add_synthetic(op_kind::multiply, {scores, read(node, scale, 0)});
    if (node.get_input_size() > mask && !node.get_causal()) {
        const auto mask_values = read(node, mask, 0);
        scores = mask_values.type == data_type::boolean
                     ? add_synthetic(op_kind::select, {mask_values, scores, number(minus_infinity)},
                                     like(scores))
                     : add_synthetic(op_kind::add, {scores, mask_values});
    }
    scores = add_synthetic(op_kind::soft_max, {scores});
    add_synthetic(op_kind::mat_mul, {scores, value}, describe(node.output(0)));
}

void model_ops::add_producer(const ov::Output<ov::Node>& value, std::size_t depth) {
    ov::Node& producer = *value.get_node();
    if (depth > max_depth || producer.get_output_size() != 1 || claimed_.contains(&producer) ||
        value.get_target_inputs().size() != 1)
        return;
    if (is_nan_to_zero(producer)) return add_nan_to_zero(producer, depth);
    if (const op_kind kind = kind_of(producer); kind != op_kind::other)
        add_node(producer, kind, depth);
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
