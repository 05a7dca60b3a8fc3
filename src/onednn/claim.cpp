#include "onednn/claim.hpp"

#include "base/error.hpp"
#include "base/verbose.hpp"
#include "graph/match.hpp"
#include "onednn/real_library.hpp"
#include "onednn/real_partition.hpp"
#include "onednn/region.hpp"
#include "onednn/translate_op.hpp"

#include <algorithm>
#include <string>

namespace maskwise::onednn {
namespace {

// The newest oneDNN whose function list this plugin knows. In front of a newer one, a function that
// Maskwise does not export could be handed a compiled partition that only Maskwise compiled; so
// there nothing is claimed that the real library cannot compile as well.
// (The definition is for a test that plays an older Maskwise.)
#ifndef MASKWISE_NEWEST_KNOWN_MINOR
#define MASKWISE_NEWEST_KNOWN_MINOR 14
#endif
constexpr int newest_known_major = 3;
constexpr int newest_known_minor = MASKWISE_NEWEST_KNOWN_MINOR;

bool claimable(const graph::op& op, bool real_supports, std::string& reason) {
    if (!real_supports && real_is_newer_than_known()) {
        reason = "oneDNN is newer than this Maskwise and does not support the partition";
        return false;
    }
    return graph::can_claim(op, reason);
}

void report(bool claimed, const partition_record& record, const std::string& reason) {
    if (verbose_level() < 1) return;
    print_verbose((claimed ? "claim," : "refuse,") + std::to_string(record.id) + ',' +
                  record.select.name + ',' +
                  (claimed ? std::string("Select alone, oneDNN ") +
                                 (record.real_supports ? "supports it" : "does not support it")
                           : reason));
}

void claim(const std::shared_ptr<partition_record>& record, const op_record& op,
           abi::partition handle) {
    record->select = translate(op);
    call_real(&real_library::partition_get_id, abi::const_partition(handle), &record->id);
    std::uint8_t supported = 0;
    call_real(&real_library::partition_is_supported, abi::const_partition(handle), &supported);
    record->real_supports = supported != 0;
    std::string reason;
    const bool claimed = claimable(record->select, record->real_supports, reason);
    if (claimed) tables().partitions.insert(handle, record);
    report(claimed, *record, reason);
}

} // namespace

bool real_is_newer_than_known() {
    return real().at_least(newest_known_major, newest_known_minor + 1);
}

void claim_partition(const graph_record& graph, abi::partition partition) {
    const auto ids = op_ids(partition);
    if (ids.size() != 1) return note_region(graph, partition);
    const auto op = find_op(graph, ids[0]);
    if (op == nullptr || op->kind != abi::op_kind_select) return;
    auto record = std::make_shared<partition_record>();
    record->fpmath_mode = graph.fpmath_mode;
    record->fpmath_applies_to_int = graph.fpmath_applies_to_int;
    claim(record, *op, partition);
}

void claim_single_op(const op_record& op, int engine_kind, abi::partition partition) {
    if (engine_kind != abi::engine_cpu || op.kind != abi::op_kind_select) return;
    claim(std::make_shared<partition_record>(), op, partition);
}

} // namespace maskwise::onednn
