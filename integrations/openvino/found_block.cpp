#include "found_block.hpp"

#include "element_types.hpp"
#include "fused.hpp"
#include "precision_probe.hpp"

#include "tensor/data_type.hpp"

#include <openvino/op/constant.hpp>

#include <algorithm>
#include <limits>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;
using graph::op_kind;

// Operands stand behind each other, so factors move by one.
void add_causal_step(found_block& found) {
    fusion::row_chain& rows = found.block.rows;
    const std::size_t fill = rows.operands.size();
    for (auto& factor : found.block.attention->factors)
        if (factor.operand >= fill) ++factor.operand;
    rows.operands.emplace_back();
    rows.steps.push_back(row_causal_select{fill});
    constexpr std::size_t matrices = 3;
    const source number = -std::numeric_limits<float>::infinity();
    found.sources.insert(found.sources.begin() + static_cast<std::ptrdiff_t>(matrices + fill),
                         number);
}

// The rank of the scores is known, or their SoftMax works along the last dimension whatever it is.
found_block describe(fusion::block block, const model_ops& from) {
    found_block found{std::move(block), {}, {}};
    found.block.rows.rank.reset();
    for (const std::size_t id : found.block.inputs()) found.sources.push_back(from.source_of(id));
    for (const std::size_t id : found.block.op_ids()) {
        const node_set& more = from.nodes_of(id);
        found.nodes.insert(more.begin(), more.end());
    }
    return found;
}

std::optional<fusion::block> find_around(const graph::op& soft_max, const model_ops& from) {
    try {
        return fusion::find_block(soft_max, model_rules(from));
    } catch (const fusion::no_chain&) {
        return std::nullopt;
    }
}

bool ends_in(const fusion::block& block, const ov::Node& end, const model_ops& from) {
    return std::ranges::any_of(block.op_ids(),
                               [&](std::size_t id) { return from.nodes_of(id).contains(&end); });
}

bool has_select(const fusion::row_chain& rows) {
    return std::ranges::any_of(
        rows.steps, [](const row_step& step) { return std::holds_alternative<row_select>(step); });
}

bool has_known_rank(const ov::Node& soft_max) {
    const auto rank = soft_max.get_output_partial_shape(0).rank();
    return rank.is_static() && rank.get_length() > 0 && rank.get_length() <= max_rank;
}

ov::Output<ov::Node> follow(const std::vector<std::size_t>& way, const ov::OutputVector& inputs) {
    ov::Output<ov::Node> at = inputs.at(way.front());
    for (std::size_t i = 1; i < way.size(); ++i) at = at.get_node()->input_value(way[i]);
    return at;
}

} // namespace

ov::OutputVector found_block::inputs_of(const ov::OutputVector& inputs) const {
    ov::OutputVector own;
    for (const source& from : sources) {
        if (const auto* way = std::get_if<std::vector<std::size_t>>(&from))
            own.push_back(follow(*way, inputs));
        else
            own.push_back(op::v0::Constant::create(ov::element::f32, {}, {std::get<float>(from)}));
    }
    return own;
}

std::shared_ptr<ov::Node> found_block::make(const ov::OutputVector& inputs) const {
    ov::OutputVector own = inputs_of(inputs);
    const bool probes = block.attention.has_value();
    if (probes) own.push_back(make_precision_probe());
    return std::make_shared<fused>(own, block, probes);
}

std::string found_block::text(const ov::Node& end) const {
    return std::string(block.attention ? "attention " : "rows ") +
           end.get_output_element_type(0).get_type_name() + ' ' + std::to_string(nodes.size()) +
           (nodes.size() == 1 ? " node" : " nodes");
}

std::optional<found_block> find_block(const ov::Node& end, const ov::Node* replaced) {
    if (!computes_in_f32(type_of(end.get_output_element_type(0)))) return std::nullopt;
    const model_ops from(end, replaced);
    const bool is_softmax = !from.all().empty() && from.all().back().kind == op_kind::soft_max;
    for (const graph::op& each : from.all()) {
        if (each.kind != op_kind::soft_max || !graph::works_along(each, 1)) continue;
        auto block = find_around(each, from);
        if (!block || block->attention.has_value() == is_softmax || !ends_in(*block, end, from))
            continue;
        if (is_softmax && !(has_known_rank(end) && has_select(block->rows))) return std::nullopt;
        found_block found = describe(std::move(*block), from);
        const auto* whole = ov::as_type<const op::v13::ScaledDotProductAttention>(&end);
        if (whole != nullptr && whole->get_causal()) add_causal_step(found);
        return found;
    }
    return std::nullopt;
}

} // namespace maskwise::openvino
