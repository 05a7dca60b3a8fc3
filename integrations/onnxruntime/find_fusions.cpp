#include "find_fusions.hpp"

#include "claims.hpp"
#include "fusion_graph.hpp"

#include "fusion/gains.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <variant>

namespace maskwise::ort {
namespace {

std::int64_t depth_of(const fusion::matrix_input& matrix) {
    const dims& extents = matrix.tensor.extents;
    const int d = matrix.order.back();
    return d < extents.rank() ? extents[d] : graph::unknown_extent;
}

bool is_mask(const row_step& step) {
    const auto* const combine = std::get_if<row_combine>(&step);
    return combine != nullptr ? combine->op == row_operator::add
                              : std::holds_alternative<row_select>(step);
}

bool attention_pays(const fusion::block& block) {
    const bool is_masked = std::ranges::any_of(block.rows.steps, is_mask);
    return fusion::gains::onnxruntime_attention_with(is_masked).holds(
        std::max(depth_of(block.attention->query), depth_of(block.attention->key)));
}

std::int64_t columns_of(const graph::op& soft_max) {
    const dims& shape = soft_max.inputs[0].extents; // empty if the rank is unknown
    return shape.empty() ? graph::unknown_extent : shape[shape.rank() - 1];
}

bool rows_pay(const fusion::row_chain& chain, std::int64_t columns) {
    const bool selects =
        chain.soft_max->nan_as_zero || std::ranges::any_of(chain.steps, [](const row_step& step) {
            return std::holds_alternative<row_select>(step);
        });
    return (selects ? fusion::gains::onnxruntime_selecting_rows : fusion::gains::onnxruntime_rows)
        .holds(columns);
}

std::string reason_against(const fusion_match& match, std::int64_t columns, rounding& exactness) {
    const fusion::block& block = match.fused.block;
    const value& result = value_of(block.result());
    if (match.nodes.size() < 2) return "no neighbor that Maskwise can fuse";
    // ONNX Runtime would create a fused node without an output.
    if (!result.is_output && result.readers.empty()) return "its result is unused";
    if (!block.attention && !rows_pay(block.rows, columns))
        return "rows of " + std::to_string(columns) + " columns, so ONNX Runtime may be faster";
    if (!exactness.is_exact_for(match.nodes) ||
        (block.attention ? is_inverted(result) : needs_small_weights(result)))
        return rounds_differently;
    for (const node* const each : match.nodes)
        if (each->is("Where"))
            if (auto why = reason_to_refuse(*each); !why.empty()) return why;
    return "";
}

fusion_match match_around(const fusion_ops& ops, const graph::op& soft_max,
                          fusion_match_policy& rules, rounding& exactness) {
    fusion_match match;
    fused_block& fused = match.fused;
    fused.name = soft_max.name;
    fused.type = ops.nodes[soft_max.id][0]->result().type;
    fused.block = fusion::find_block(soft_max, rules);
    if (fused.block.attention && !attention_pays(fused.block)) fused.block.attention.reset();
    for (const std::size_t id : fused.block.inputs()) fused.inputs.emplace_back(value_of(id).name);
    fused.output = value_of(fused.block.result()).name;
    for (const std::size_t id : fused.block.op_ids())
        match.nodes.insert(match.nodes.end(), ops.nodes[id].begin(), ops.nodes[id].end());
    match.reason_against = reason_against(match, columns_of(soft_max), exactness);
    if (match.reason_against.empty()) rules.mark_taken(fused.block.op_ids());
    return match;
}

} // namespace

std::string fusion_match::text() const {
    return std::string(fused.block.attention ? "attention " : "rows ") +
           std::string(to_string(fused.type)) + ' ' + std::to_string(nodes.size()) + " nodes";
}

std::vector<fusion_match> find_fusions(const model_graph& graph, rounding& exactness) {
    const fusion_ops ops(graph);
    fusion_match_policy rules(ops);
    std::vector<fusion_match> matches;
    for (const graph::op& op : ops.operators)
        if (op.kind == graph::op_kind::soft_max && graph::works_along(op, 1))
            matches.push_back(match_around(ops, op, rules, exactness));
    return matches;
}

} // namespace maskwise::ort
