// Records the operators of graphs. After the real library has partitioned a graph, claims Selects,
// regions and merged groups (see partition/claim.hpp). If nothing is merged, handles, order and ids
// are the real library's.

#include "onednn/library/forward.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/claim_partition.hpp"
#include "onednn/partition/dump.hpp"
#include "onednn/partition/merged_partitions.hpp"
#include "onednn/record/tables.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::onednn {
namespace {

abi::status record_graph(abi::status status, abi::graph* graph, const graph_settings& settings) {
    return record_created(status, graph, real_graph_destroy, [&] {
        auto record = std::make_unique<graph_record>();
        record->settings = settings;
        tables().graphs.insert(*graph, std::move(record));
    });
}

// Doubles the capacity, because reserve(size + 1) would copy the list in every call.
void make_room(op_list& ops) {
    if (ops.size() == ops.capacity()) ops.reserve(std::max<std::size_t>(8, 2 * ops.size()));
}

// Verbose lines show the graph's fpmath mode. oneDNN does not return the mode of a finalized graph,
// so the plugin reads the mode at the first marker (op_record::is_marker). The setter's hook
// records later changes.
void note_marker(abi::graph graph, graph_record& record) {
    if (std::exchange(record.has_marker, true)) return;
    int applies_to_int = 0;
    real_graph_get_fpmath_mode(graph, &record.settings.fpmath_mode, &applies_to_int);
    record.settings.fpmath_applies_to_int = applies_to_int != 0;
}

// If the client requests more partitions than exist, oneDNN creates empty objects for the rest. The
// plugin must not read empty objects.
abi::status get_claimed(abi::graph graph, const graph_record* record, std::size_t num,
                        abi::partition* partitions) {
    if (record != nullptr && !record->listed.empty() && num > 0 && partitions != nullptr)
        return get_listed_partitions(graph, *record, num, partitions);
    const auto status = real_graph_get_partitions(graph, num, partitions);
    if (status != abi::success) return status;
    if (record == nullptr || !record->has_marker || record->settings.engine_kind != abi::engine_cpu)
        return status;
    const std::size_t count = std::min(num, partition_count(graph));
    const auto claimed = guarded([&] {
        for (std::size_t i = 0; i < count; ++i) claim_partition(*record, partitions[i]);
    });
    if (claimed != abi::success) destroy({partitions, num});
    return claimed;
}

} // namespace

abi::status dnnl_graph_graph_create(abi::graph* graph, int engine_kind) {
    return record_graph(real_graph_create(graph, engine_kind), graph, {engine_kind});
}

abi::status dnnl_graph_graph_create_with_fpmath_mode(abi::graph* graph, int engine_kind, int mode) {
    return record_graph(real_graph_create_with_fpmath_mode(graph, engine_kind, mode), graph,
                        {engine_kind, mode});
}

abi::status dnnl_graph_graph_destroy(abi::graph graph) {
    tables().graphs.erase(graph);
    return real_graph_destroy(graph);
}

abi::status dnnl_graph_graph_set_fpmath_mode(abi::graph graph, int mode, int apply_to_int) {
    const auto status = real_graph_set_fpmath_mode(graph, mode, apply_to_int);
    auto* const record = tables().graphs.find(graph);
    if (status == abi::success && record != nullptr) {
        record->settings.fpmath_mode = mode;
        record->settings.fpmath_applies_to_int = apply_to_int != 0;
    }
    return status;
}

abi::status dnnl_graph_add_op(abi::graph graph, abi::op op) {
    auto* const record = tables().graphs.find(graph);
    const auto* const added = record != nullptr ? tables().ops.find(op) : nullptr;
    if (added == nullptr) {
        const auto status = real_add_op(graph, op);
        // The consumers of the graph's values are now unknown, so oneDNN runs the whole graph.
        if (record != nullptr && status == abi::success) tables().graphs.erase(graph);
        return status;
    }
    // Reserves first, so that recording cannot fail after the real library has the operator.
    const auto prepared = guarded([&] { make_room(record->ops); });
    if (prepared != abi::success) return prepared;
    const auto status = real_add_op(graph, op);
    if (status != abi::success) return status;
    (*added)->is_shared.store(true, std::memory_order_relaxed);
    record->ops.push_back(*added);
    record->has_select = record->has_select || (*added)->kind == abi::op_kind_select;
    if ((*added)->is_marker()) note_marker(graph, *record);
    return status;
}

abi::status dnnl_graph_graph_filter(abi::graph graph, int policy) {
    const auto status = real_graph_filter(graph, policy);
    auto* const record = tables().graphs.find(graph);
    if (record == nullptr) return status;
    record->listed.clear();
    // If memory runs out or a tensor cannot be read, nothing is merged.
    if (status == abi::success)
        guarded([&] { record->listed = list_partitions(graph, *record, policy); });
    return status;
}

abi::status dnnl_graph_graph_get_partition_num(abi::const_graph graph, std::size_t* num) {
    const auto status = real_graph_get_partition_num(graph, num);
    const auto* const record = tables().graphs.find(graph);
    if (status == abi::success && record != nullptr && !record->listed.empty())
        *num = record->listed.size();
    return status;
}

abi::status dnnl_graph_graph_get_partitions(abi::graph graph, std::size_t num,
                                            abi::partition* partitions) {
    const auto* const record = tables().graphs.find(graph);
    const auto status = get_claimed(graph, record, num, partitions);
    if (status != abi::success || record == nullptr || !dump_is_wanted(*record)) return status;
    const std::size_t count =
        record->listed.empty() ? partition_count(graph) : record->listed.size();
    guarded([&] { dump_graph(*record, {partitions, std::min(num, count)}); });
    return status;
}

} // namespace maskwise::onednn
