#include "onednn/partition/claim_partition.hpp"

#include "base/verbose.hpp"
#include "graph/match.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/find_region.hpp"
#include "onednn/partition/report.hpp"
#include "onednn/record/tables.hpp"
#include "onednn/record/translate_op.hpp"

#include <algorithm>
#include <string>

namespace maskwise::onednn {
namespace {

std::shared_ptr<partition_claim> new_claim(const graph_settings& settings,
                                           abi::partition partition) {
    auto claim = std::make_shared<partition_claim>();
    claim->settings = settings;
    call_real(&real_library::partition_get_id, abi::const_partition(partition), &claim->id);
    return claim;
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

void report_select(bool is_claimed, const partition_claim& claim, const std::string& text) {
    if (verbose_level() < 1) return;
    print_verbose((is_claimed ? "claim," : "refuse,") + std::to_string(claim.id) + ',' +
                  claim.names + ',' + text);
}

void claim_select(const op_record& op, const graph_settings& settings, abi::partition partition) {
    auto claim = new_claim(settings, partition);
    select_claim form{translate(op), is_supported(partition)};
    claim->names = form.select.name;
    std::string text;
    const bool is_claimed = claimable(form, text);
    if (is_claimed)
        text = std::string("Select alone, oneDNN ") +
               (form.real_supports ? "supports it" : "does not support it");
    claim->form = std::move(form);
    if (is_claimed) tables().claims.insert(partition, claim);
    report_select(is_claimed, *claim, text);
}

bool has_select(const op_list& ops) {
    return std::any_of(ops.begin(), ops.end(),
                       [](const auto& op) { return op->kind == abi::op_kind_select; });
}

// Silent unless the partition holds a Select.
void claim_region(const graph_record& graph, abi::partition partition) {
    op_list ops;
    for (const std::size_t id : op_ids(partition)) {
        ops.push_back(find_op(graph.ops, id));
        if (ops.back() == nullptr) return;
    }
    if (!has_select(ops)) return;
    auto claim = new_claim(graph.settings, partition);
    claim->names = joined_names(ops);
    std::string reason;
    auto region =
        find_region(graph.settings, std::move(ops), ids_of(output_ports(partition)), reason);
    if (!region) return report_composite("refuse", claim->id, reason);
    claim->form = std::move(*region);
    tables().claims.insert(partition, std::move(claim));
}

} // namespace

void claim_partition(const graph_record& graph, abi::partition partition) {
    const auto ids = op_ids(partition);
    if (ids.size() != 1) return claim_region(graph, partition);
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
    auto claim = new_claim(graph.settings, partition);
    claim->names = group->names;
    claim->form = group;
    if (verbose_level() >= 1)
        print_verbose("claim," + std::to_string(claim->id) + ',' + claim->names + ",merged from " +
                      std::to_string(group->op_ids.size()) + " partitions");
    tables().claims.insert(partition, std::move(claim));
}

} // namespace maskwise::onednn
