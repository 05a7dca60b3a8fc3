#include "onednn/partition/claim_partition.hpp"

#include "fusion/find_row_chain.hpp"
#include "graph/compiled_select.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/gains.hpp"
#include "onednn/partition/report.hpp"
#include "onednn/record/tables.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace maskwise::onednn {
namespace {

partition_facts facts_of(abi::partition partition, const graph_settings& settings,
                         std::string names) {
    partition_facts facts{0, std::move(names), settings};
    real_partition_get_id(partition, &facts.id);
    return facts;
}

void insert(abi::partition partition, partition_claim&& claim) {
    tables().claims.insert(partition, std::make_unique<partition_claim>(std::move(claim)));
}

// A newer oneDNN may have functions that Maskwise does not export. Those functions cannot use a
// partition that only Maskwise has compiled.
bool is_claimable(const select_claim& form, std::string& reason) {
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
    if (!is_claimable(form, reason)) return report_verdict("refuse", facts.id, facts.names, reason);
    report_verdict("claim", facts.id, facts.names,
                   std::string("Select alone, oneDNN ") +
                       (form.real_supports ? "supports it" : "does not support it"));
    insert(partition, {facts, std::move(form)});
}

// Without a Select, oneDNN is as fast as a row chain. Maskwise then claims only gradients and
// attention with statistics, and reports no refusal.
void claim_region(const graph_record& graph, const std::vector<std::size_t>& ids,
                  abi::partition partition) {
    row_region region{graph.settings, {}, {}, output_ids(partition), {}};
    for (const std::size_t id : ids) {
        region.records.push_back(find_op(graph.ops, id));
        if (region.records.back() == nullptr) return;
    }
    const auto is_select = [](const auto& op) { return op->kind == abi::op_kind_select; };
    const auto is_marker = [](const auto& op) { return op->is_marker(); };
    if (std::ranges::none_of(region.records, is_marker)) return;
    const bool has_select = std::ranges::any_of(region.records, is_select);
    for (const auto& record : region.records) region.ops.push_back(translate(*record));
    const auto facts = facts_of(partition, graph.settings, joined_names(region.records));
    std::string reason;
    if (std::ranges::count(region.ops, graph::op_kind::exp, &graph::op::kind) == 1)
        region.gradients = fusion::find_gradients(region.ops, region.output_ids, reason);
    auto chain = fusion::find_row_chain(region.ops, region.output_ids, reason);
    if (chain) {
        auto attention = fusion::find_attention(region.ops, region.output_ids, *chain);
        region.block = fusion::block{std::move(*chain), std::move(attention)};
        if (!region.block->attention) reason = reason_against_rows(region);
    }
    if (region.gradients && !std::exchange(reason, {}).empty()) region.block.reset();
    if (!reason.empty() && !has_select) return;
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
