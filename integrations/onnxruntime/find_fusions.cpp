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
    const auto* const with = std::get_if<row_combine>(&step);
    return with != nullptr ? with->op == row_operator::add
                           : std::holds_alternative<row_select>(step);
}

bool attention_pays(const fusion::block& block) {
    const std::int64_t depth =
        std::max(depth_of(block.attention->query), depth_of(block.attention->key));
    const bool is_known = depth > 0;
    return std::ranges::any_of(block.rows.steps, is_mask)
               ? !is_known || fusion::gains::onnxruntime_masked_attention.holds(depth)
               : is_known && fusion::gains::onnxruntime_attention.holds(depth);
}

std::int64_t columns_of(const graph::op& soft_max) {
    const dims& shape = soft_max.inputs[0].extents; // none where the rank is not known
    return shape.empty() ? graph::unknown_extent : shape[shape.rank() - 1];
}

bool rows_pay(const fusion::row_chain& chain, std::int64_t columns) {
    const bool selects =
        chain.soft_max->nan_as_zero || std::ranges::any_of(chain.steps, [](const row_step& step) {
            return std::holds_alternative<row_select>(step);
        });
    if (columns == graph::unknown_extent) return true;
    return (selects ? fusion::gains::onnxruntime_selecting_rows : fusion::gains::onnxruntime_rows)
        .holds(columns);
}

// A Softmax alone stays: ONNX Runtime's is as good.
std::string reason_against(const found_fusion& found, std::int64_t columns, rounding& rounds) {
    const fusion::block& block = found.form.block;
    const value& result = value_of(block.result());
    if (found.nodes.size() < 2) return "nothing around it that could be fused";
    // ONNX Runtime would make a node without an output of it.
    if (!result.is_output && result.readers.empty()) return "nobody reads its result";
    if (!block.attention && !rows_pay(block.rows, columns))
        return "rows of " + std::to_string(columns);
    if (!rounds.is_exact_for(found.nodes) ||
        (block.attention ? divides(result) : needs_small_weights(result)))
        return rounds_otherwise;
    for (const node* const each : found.nodes)
        if (each->is("Where"))
            if (auto why = reason_to_refuse(*each); !why.empty()) return why;
    return "";
}

// Operators of what is claimed are no longer free for the next.
found_fusion claim_around(const fusion_ops& ops, const graph::op& soft_max, fusion_rules& rules,
                          rounding& rounds) {
    found_fusion found;
    fused_node& form = found.form;
    form.name = soft_max.name;
    form.type = ops.nodes[soft_max.id][0]->result().type;
    form.block = fusion::find_block(soft_max, rules);
    if (form.block.attention && !attention_pays(form.block)) form.block.attention.reset();
    for (const std::size_t id : form.block.inputs()) form.inputs.emplace_back(value_of(id).name);
    form.output = value_of(form.block.result()).name;
    for (const std::size_t id : form.block.op_ids())
        found.nodes.insert(found.nodes.end(), ops.nodes[id].begin(), ops.nodes[id].end());
    found.reason_against = reason_against(found, columns_of(soft_max), rounds);
    if (found.reason_against.empty()) rules.mark_taken(form.block.op_ids());
    return found;
}

} // namespace

std::string found_fusion::text() const {
    return std::string(form.block.attention ? "attention " : "rows ") +
           std::string(to_string(form.type)) + ' ' + std::to_string(nodes.size()) + " nodes";
}

std::vector<found_fusion> find_fusions(const model_graph& of, rounding& rounds) {
    const fusion_ops ops(of);
    fusion_rules rules(ops);
    std::vector<found_fusion> all;
    for (const graph::op& op : ops.all)
        if (op.kind == graph::op_kind::soft_max && graph::works_along(op, 1))
            all.push_back(claim_around(ops, op, rules, rounds));
    return all;
}

} // namespace maskwise::ort
