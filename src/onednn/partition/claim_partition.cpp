#include "onednn/partition/claim_partition.hpp"

#include "graph/compiled_select.hpp"
#include "graph/find_row_chain.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/report.hpp"
#include "onednn/record/tables.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>
#include <string>

namespace maskwise::onednn {
namespace {

partition_facts facts_of(abi::partition partition, const graph_settings& settings,
                         std::string names) {
    partition_facts facts{0, std::move(names), settings};
    call_real(&real_library::partition_get_id, abi::const_partition(partition), &facts.id);
    return facts;
}

void insert(abi::partition partition, partition_claim&& claim) {
    tables().claims.insert(partition, std::make_unique<partition_claim>(std::move(claim)));
}

// A function that a newer oneDNN has and Maskwise does not export could be handed a compiled
// partition that only Maskwise compiled.
bool claimable(const select_claim& form, std::string& reason) {
    if (!form.real_supports && real_is_newer_than_known()) {
        reason = "oneDNN is newer than this Maskwise and does not support the partition";
        return false;
    }
    return graph::can_claim(form.select, reason);
}

void claim_select(const op_record& op, const graph_settings& settings, abi::partition partition) {
    select_claim form{translate(op), is_supported(partition)};
    const auto facts = facts_of(partition, settings, form.select.name);
    std::string reason;
    if (!claimable(form, reason)) return report_verdict("refuse", facts.id, facts.names, reason);
    report_verdict("claim", facts.id, facts.names,
                   std::string("Select alone, oneDNN ") +
                       (form.real_supports ? "supports it" : "does not support it"));
    insert(partition, {facts, std::move(form)});
}

// Measured in front of 3.7: there a mask that replaces the scores where it is true is arithmetic
// inside oneDNN's own kernels, and nothing is gained.
bool masks_by_arithmetic(const graph::row_chain& chain) {
    const auto replaces = [](const row_step& step) {
        const auto* select = std::get_if<row_select>(&step);
        return select != nullptr && select->op == row_operator::select_masked;
    };
    return !real().at_least(3, 8) && std::any_of(chain.steps.begin(), chain.steps.end(), replaces);
}

// oneDNN 3.13 does not run a mask that is not broadcast by reference code. Then a short chain gains
// less than cutting the partition in two costs (0.87 at 1 Mi elements, 1.0 at 4 Mi, 1.13 at 16 Mi).
bool masks_element_by_element(const std::vector<graph::op>& ops, const graph::row_chain& chain) {
    constexpr std::size_t short_chain = 3;
    constexpr std::int64_t gains_from_elements = 4 << 20;
    if (!real().at_least(3, 8) || chain.length() > short_chain) return false;
    return std::any_of(ops.begin(), ops.end(), [&](const graph::op& op) {
        if (op.kind != graph::op_kind::select || chain.operands.empty()) return false;
        const auto &cond = op.inputs[0], &scores = op.inputs[1];
        const bool is_operand =
            std::any_of(chain.operands.begin(), chain.operands.end(),
                        [&cond](const auto& operand) { return operand.id == cond.id; });
        return is_operand && cond.shape_known() && cond.extents == scores.extents &&
               element_count(cond.extents) < gains_from_elements;
    });
}

// Why the partition is better left to oneDNN; empty where it is not.
std::string reason_against(const row_region& region) {
    if (masks_by_arithmetic(region.chain))
        return "this oneDNN is as fast with a mask that replaces scores";
    if (masks_element_by_element(region.ops, region.chain))
        return "this oneDNN is as fast with a mask of the scores' own shape";
    return {};
}

// Silent unless the partition holds a Select.
void claim_region(const graph_record& graph, const std::vector<std::size_t>& ids,
                  abi::partition partition) {
    row_region region{graph.settings, {}, {}, ids_of(output_ports(partition)), {}};
    for (const std::size_t id : ids) {
        region.records.push_back(find_op(graph.ops, id));
        if (region.records.back() == nullptr) return;
    }
    const auto is_select = [](const auto& op) { return op->kind == abi::op_kind_select; };
    if (std::ranges::none_of(region.records, is_select)) return;
    for (const auto& record : region.records) region.ops.push_back(translate(*record));
    const auto facts = facts_of(partition, graph.settings, joined_names(region.records));
    std::string reason;
    auto chain = graph::find_row_chain(region.ops, region.output_ids, reason);
    if (chain) {
        region.chain = std::move(*chain);
        reason = reason_against(region);
    }
    if (!reason.empty()) return report_verdict("refuse", facts.id, "composite", reason);
    insert(partition, {facts, std::move(region)});
}

} // namespace

void claim_partition(const graph_record& graph, abi::partition partition) {
    const auto ids = op_ids(partition);
    if (ids.size() != 1) return claim_region(graph, ids, partition);
    const auto op = find_op(graph.ops, ids[0]);
    if (op == nullptr || op->kind != abi::op_kind_select) return;
    claim_select(*op, graph.settings, partition);
}

void claim_single_op(const op_record& op, int engine_kind, abi::partition partition) {
    if (engine_kind != abi::engine_cpu || op.kind != abi::op_kind_select) return;
    claim_select(op, graph_settings{}, partition);
}

void claim_merged(const graph_record& graph, const std::shared_ptr<const merged_group>& group,
                  abi::partition partition) {
    auto facts = facts_of(partition, graph.settings, group->names);
    report_verdict("claim", facts.id, facts.names,
                   "merged from " + std::to_string(group->op_ids.size()) + " partitions");
    insert(partition, {std::move(facts), group});
}

} // namespace maskwise::onednn
