#include "found_block.hpp"

#include "element_types.hpp"

#include "tensor/data_type.hpp"

#include <openvino/op/constant.hpp>

#include <algorithm>
#include <limits>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;
using graph::op_kind;

// Operands stand before the numbers that factors refer to, so factors move by one.
void add_causal_step(found_block& found) {
    fusion::row_chain& rows = found.block.rows;
    const std::size_t fill = rows.operands.size();
    for (auto& factor : found.block.attention->factors)
        if (factor.side >= fill) ++factor.side;
    rows.operands.emplace_back();
    rows.steps.push_back(row_causal_select{fill});
    constexpr std::size_t matrices = 3;
    const source number{.number = -std::numeric_limits<float>::infinity()};
    found.sources.insert(found.sources.begin() + static_cast<std::ptrdiff_t>(matrices + fill),
                         number);
}

void add_default_scale(found_block& found) {
    constexpr std::size_t matrices = 3;
    found.block.attention->factors.push_back(
        {row_operator::multiply, found.sources.size() - matrices});
    found.scales_by_depth = true;
}

// The rank of the scores is known, or their SoftMax works along the last dimension whatever it is.
found_block describe(fusion::block block, const model_ops& from) {
    found_block found{std::move(block), {}, {}, {}};
    found.block.rows.rank.reset();
    for (const std::size_t id : found.block.inputs()) found.sources.push_back(from.source_of(id));
    for (const std::size_t id : found.block.op_ids()) {
        const node_set& more = from.nodes_of(id);
        found.nodes.insert(more.begin(), more.end());
    }
    found.last = from.result_node(found.block.result());
    return found;
}

std::optional<fusion::block> find_around(const graph::op& soft_max, const model_ops& from) {
    try {
        return fusion::find_block(soft_max, model_rules(from));
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

void add_attributes(found_block& found, const op::v13::ScaledDotProductAttention& end) {
    if (end.get_causal()) add_causal_step(found);
    if (!has_scale(end)) add_default_scale(found);
}

} // namespace

ov::OutputVector found_block::inputs() const {
    ov::OutputVector outputs;
    for (const source& from : sources)
        outputs.push_back(from.reader != nullptr
                              ? from.reader->input_value(from.input)
                              : op::v0::Constant::create(ov::element::f32, {}, {from.number}));
    return outputs;
}

std::string found_block::text() const {
    return std::string(block.attention ? "attention " : "rows ") +
           last->get_output_element_type(0).get_type_name() + ' ' + std::to_string(nodes.size()) +
           (nodes.size() == 1 ? " node" : " nodes");
}

std::optional<found_block> find_block(ov::Node& end, const node_set& claimed) {
    if (!computes_in_f32(type_of(end.get_output_element_type(0)))) return std::nullopt;
    const model_ops from(end, claimed);
    for (const graph::op& each : from.all()) {
        if (each.kind != op_kind::soft_max || !graph::works_along(each, 1)) continue;
        auto block = find_around(each, from);
        if (!block || block->attention.has_value() == is_softmax(end)) continue;
        found_block found = describe(std::move(*block), from);
        if (!found.nodes.contains(&end)) continue;
        if (is_softmax(end) && !(has_known_rank(end) && has_select(found.block.rows)))
            return std::nullopt;
        if (const auto* whole = ov::as_type<op::v13::ScaledDotProductAttention>(&end))
            add_attributes(found, *whole);
        return found;
    }
    return std::nullopt;
}

} // namespace maskwise::openvino
