#include "block_match.hpp"

#include "element_types.hpp"

#include "tensor/data_type.hpp"

#include <openvino/op/constant.hpp>

#include <algorithm>
#include <limits>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;
using graph::op_kind;

// Adds a causal mask. The score of masked keys becomes the last operand of the row steps, so the
// indices of the factors' operands grow by one.
void add_causal_step(block_match& match) {
    fusion::row_chain& rows = match.block.rows;
    const std::size_t fill = rows.operands.size();
    for (auto& factor : match.block.attention->factors)
        if (factor.side >= fill) ++factor.side;
    rows.operands.emplace_back();
    rows.steps.push_back(causal_select(fill));
    constexpr std::size_t matrices = 3;
    const value_source number{.number = -std::numeric_limits<float>::infinity()};
    match.sources.insert(match.sources.begin() + static_cast<std::ptrdiff_t>(matrices + fill),
                         number);
}

void add_default_scale(block_match& match) {
    constexpr std::size_t matrices = 3;
    match.block.attention->factors.push_back(
        {row_operator::multiply, match.sources.size() - matrices});
    match.scales_by_depth = true;
}

// Drops the block's required rank: the scores have this rank, or the Softmax works along the last
// dimension of any rank.
block_match describe(fusion::block block, const model_ops& ops) {
    block_match match{std::move(block), {}, {}, {}};
    match.block.rows.rank.reset();
    for (const std::size_t id : match.block.inputs()) match.sources.push_back(ops.source_of(id));
    for (const std::size_t id : match.block.op_ids()) {
        const node_set& nodes = ops.nodes_of(id);
        match.nodes.insert(nodes.begin(), nodes.end());
    }
    match.last = ops.result_node(match.block.result());
    return match;
}

std::optional<fusion::block> find_around_soft_max(const graph::op& soft_max, const model_ops& ops) {
    try {
        return fusion::find_block(soft_max, model_match_policy(ops));
    } catch (const fusion::no_chain&) {
        return std::nullopt;
    }
}

bool has_select(const fusion::row_chain& rows) {
    return std::ranges::any_of(
        rows.steps, [](const row_step& step) { return std::holds_alternative<row_select>(step); });
}

bool has_known_rank(const ov::Node& soft_max) {
    const auto rank = soft_max.get_output_partial_shape(0).rank();
    return rank.is_static() && rank.get_length() > 0 && rank.get_length() <= max_rank;
}

void add_attributes(block_match& match, const op::v13::ScaledDotProductAttention& end) {
    if (end.get_causal()) add_causal_step(match);
    if (!has_scale(end)) add_default_scale(match);
}

} // namespace

ov::OutputVector block_match::inputs() const {
    ov::OutputVector outputs;
    for (const value_source& source : sources)
        outputs.push_back(source.reader != nullptr
                              ? source.reader->input_value(source.input)
                              : op::v0::Constant::create(ov::element::f32, {}, {source.number}));
    return outputs;
}

std::string block_match::text() const {
    return std::string(block.attention ? "attention " : "rows ") +
           last->get_output_element_type(0).get_type_name() + ' ' + std::to_string(nodes.size()) +
           (nodes.size() == 1 ? " node" : " nodes");
}

std::optional<block_match> find_block(ov::Node& end, const node_set& claimed) {
    if (!computes_in_f32(type_of(end.get_output_element_type(0)))) return std::nullopt;
    const model_ops ops(end, claimed);
    for (const graph::op& soft_max : ops.operators()) {
        if (soft_max.kind != op_kind::soft_max || !graph::works_along(soft_max, 1)) continue;
        auto block = find_around_soft_max(soft_max, ops);
        if (!block || block->attention.has_value() == is_softmax(end)) continue;
        block_match match = describe(std::move(*block), ops);
        if (!match.nodes.contains(&end)) continue;
        if (is_softmax(end) && !(has_known_rank(end) && has_select(match.block.rows)))
            return std::nullopt;
        if (const auto* whole = ov::as_type<op::v13::ScaledDotProductAttention>(&end))
            add_attributes(match, *whole);
        return match;
    }
    return std::nullopt;
}

} // namespace maskwise::openvino
