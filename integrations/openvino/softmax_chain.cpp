#include "softmax_chain.hpp"

#include "claims.hpp"
#include "element_types.hpp"

#include "fusion/chain_finder.hpp"

#include <openvino/op/select.hpp>
#include <openvino/op/softmax.hpp>
#include <openvino/op/util/binary_elementwise_arithmetic.hpp>

#include <algorithm>
#include <map>
#include <string_view>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;
using graph::op_kind;

// From so many bytes of scores on the call itself no longer tells.
constexpr std::size_t least_bytes = std::size_t{1} << 18;

// Those that ONNX defines alike have OpenVINO's name with a capital.
struct named_kind {
    std::string_view name, onnx;
    op_kind kind;
};
constexpr named_kind elementwise[] = {
#define MASKWISE_ROW_BINARY(name, turned, onnx) {#name, onnx, op_kind::name},
#define MASKWISE_ROW_UNARY(name, onnx) {#name, onnx, op_kind::name},
#include "kernel/row_operators.inc"
};

bool is_named(std::string_view type, std::string_view name) {
    return type.size() == name.size() && type[0] + ('a' - 'A') == name[0] &&
           type.substr(1) == name.substr(1);
}

op_kind kind_of(const ov::Node& node) {
    if (ov::is_type<op::v1::Select>(&node)) return op_kind::select;
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

using path = std::vector<std::size_t>;

// The Softmax and what leads to it through values that have one reader.
class softmax_graph {
public:
    softmax_graph(const ov::Node& softmax, const ov::Node* replaced) : replaced_(replaced) {
        add(softmax, op_kind::soft_max, {});
    }

    const std::vector<graph::op>& ops() const { return ops_; }
    const ov::Node& node_of(std::size_t op) const { return *nodes_.at(op); }
    const path& path_to(std::size_t value) const { return paths_.at(value); }
    bool leaves(std::size_t value) const { return shared_.contains(value); }

private:
    template <class Node>
    graph::logical_tensor describe(const ov::Output<Node>& value);
    void add(const ov::Node& node, op_kind kind, const path& way);
    void add_maker(const ov::Output<ov::Node>& value, const path& way);
    template <class Node>
    bool has_one_reader(const ov::Output<Node>& value) const;

    const ov::Node* replaced_;
    std::vector<graph::op> ops_; // in topological order
    std::map<std::size_t, const ov::Node*> nodes_;
    std::map<std::size_t, path> paths_;
    std::set<std::size_t> shared_;
};

template <class Node>
graph::logical_tensor softmax_graph::describe(const ov::Output<Node>& value) {
    graph::logical_tensor made;
    made.id = reinterpret_cast<std::size_t>(&value.get_tensor());
    made.type = type_of(value.get_element_type());
    const ov::PartialShape& shape = value.get_partial_shape();
    made.rank_known = shape.is_static() && shape.size() <= max_rank;
    if (made.rank_known)
        for (const ov::Dimension& extent : shape) made.extents.push_back(extent.get_length());
    if (!has_one_reader(value)) shared_.insert(made.id);
    return made;
}

void softmax_graph::add(const ov::Node& node, op_kind kind, const path& way) {
    graph::op made;
    made.id = reinterpret_cast<std::size_t>(&node);
    made.kind = kind;
    made.axis = axis_of(node);
    made.auto_broadcast = broadcast_of(node);
    for (std::size_t i = 0; i < node.get_input_size(); ++i) {
        made.inputs.push_back(describe(node.input_value(i)));
        path input = way;
        if (kind != op_kind::soft_max) input.push_back(i);
        paths_.emplace(made.inputs.back().id, input);
        add_maker(node.input_value(i), input);
    }
    made.outputs = {describe(node.output(0))};
    nodes_.emplace(made.id, &node);
    ops_.push_back(std::move(made));
}

void softmax_graph::add_maker(const ov::Output<ov::Node>& value, const path& way) {
    const ov::Node& maker = *value.get_node();
    const op_kind kind = kind_of(maker);
    if (kind != op_kind::other && way.size() < max_row_actions && maker.get_output_size() == 1 &&
        has_one_reader(value))
        add(maker, kind, way);
}

template <class Node>
bool softmax_graph::has_one_reader(const ov::Output<Node>& value) const {
    const auto readers = value.get_target_inputs();
    return 1 == std::ranges::count_if(
                    readers, [this](const auto& reader) { return reader.get_node() != replaced_; });
}

class softmax_rules : public fusion::chain_rules {
public:
    explicit softmax_rules(const softmax_graph& from)
        : chain_rules(graph::graph_index(from.ops())), from_(from) {}

    bool leaves(std::size_t value) const override { return from_.leaves(value); }
    std::optional<std::size_t> row_of(const graph::op& user, std::size_t a,
                                      std::size_t b) const override {
        return fusion::row_by_shape(user, a, b, values());
    }
    bool may_follow_soft_max(data_type) const override { return false; }

private:
    const softmax_graph& from_;
};

bool is_select(const row_step& step) {
    return std::holds_alternative<row_select>(step);
}

std::optional<softmax_chain> read_chain(const ov::Node& softmax, const ov::Node* replaced) {
    const softmax_graph from(softmax, replaced);
    if (!graph::works_along(from.ops().back(), 1)) return std::nullopt;
    const auto rows = fusion::find_chain(from.ops().back(), softmax_rules(from));
    if (std::ranges::none_of(rows.steps, is_select)) return std::nullopt;
    softmax_chain chain{rows.steps, {from.path_to(rows.scores)}, {}};
    for (const auto& operand : rows.operands) chain.paths.push_back(from.path_to(operand.id));
    for (const std::size_t id : rows.op_ids) chain.nodes.insert(&from.node_of(id));
    return chain;
}

bool is_faster(const softmax_chain& chain, const ov::Node& softmax) {
    const ov::OutputVector inputs = chain.inputs_of(*softmax.get_input_node_ptr(0));
    const ov::Output<ov::Node>& scores = inputs[0];
    const std::size_t elements = ov::shape_size(scores.get_shape());
    const auto stands_alone = [&](const ov::Output<ov::Node>& input) {
        return joined_producer(*input.get_node()) == nullptr ||
               (input != scores && input.get_partial_shape().is_static() &&
                is_small_cond(ov::shape_size(input.get_shape()), elements));
    };
    return elements >= least_bytes / sizeof(float) && joined_reader(softmax) == nullptr &&
           std::ranges::all_of(inputs, stands_alone);
}

} // namespace

ov::OutputVector softmax_chain::inputs_of(const ov::Node& scores) const {
    ov::OutputVector inputs;
    for (const path& way : paths) {
        const ov::Node* node = &scores;
        for (std::size_t i = 0; i + 1 < way.size(); ++i) node = node->get_input_node_ptr(way[i]);
        inputs.push_back(node->input_value(way.back()));
    }
    return inputs;
}

std::optional<softmax_chain> find_softmax_chain(const ov::Node& softmax, bool is_forced,
                                                const ov::Node* replaced) {
    if (!axis_of(softmax) || softmax.get_output_element_type(0) != ov::element::f32)
        return std::nullopt;
    const ov::PartialShape& shape = softmax.get_output_partial_shape(0);
    if (shape.is_dynamic() || ov::shape_size(shape.to_shape()) == 0) return std::nullopt;
    auto chain = read_chain(softmax, replaced);
    if (chain && !is_forced && !is_faster(*chain, softmax)) chain.reset();
    return chain;
}

} // namespace maskwise::openvino
