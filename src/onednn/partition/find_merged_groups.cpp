#include "onednn/partition/find_merged_groups.hpp"

#include "graph/find_row_chain.hpp"
#include "graph/op_set.hpp"
#include "jit/expression_code.hpp"
#include "onednn/library/dump.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/partition_list.hpp"
#include "onednn/partition/region_ports.hpp"
#include "onednn/record/translate_op.hpp"

#include <map>
#include <set>
#include <utility>

namespace maskwise::onednn {
namespace {

// Where nothing may be merged the client sees what oneDNN made.
bool may_merge(const graph_record& record, int policy) {
    return policy == abi::policy_fusion && record.has_select && record.ops.size() > 1 &&
           record.settings.engine_kind == abi::engine_cpu && !real_is_newer_than_known() &&
           !subgraph_dump_wanted() && jit::can_compile(active_isa());
}

// The operators that oneDNN took: the first of each id.
std::vector<graph::op> translate_all(const graph_record& record) {
    std::vector<graph::op> ops;
    std::set<std::size_t> seen;
    for (const auto& each : record.ops)
        if (seen.insert(each->id).second) ops.push_back(translate(*each));
    return ops;
}

// By operator, whether the real library runs it as a partition of its own. Only a Select is here
// where it does not.
using single_op_map = std::map<std::size_t, bool>;

single_op_map single_ops(abi::graph graph, const graph_record& record) {
    std::size_t count = 0;
    call_real(&real_library::graph_get_partition_num, abi::const_graph(graph), &count);
    owned_partitions partitions{partition_list(count)};
    single_op_map found;
    if (count == 0 || call_real(&real_library::graph_get_partitions, graph, count,
                                partitions.list.data()) != abi::success)
        return found;
    for (auto* const partition : partitions.list) {
        const auto ids = op_ids(partition);
        const auto op = ids.size() == 1 ? find_op(record.ops, ids[0]) : nullptr;
        const bool supported = is_supported(partition);
        if (op && (supported || op->kind == abi::op_kind_select)) found[ids[0]] = supported;
    }
    return found;
}

// The client's own tensors for these, as they were given at add_op.
std::vector<abi::logical_tensor> as_given(const op_list& records,
                                          const std::vector<graph::logical_tensor>& tensors) {
    std::vector<abi::logical_tensor> given;
    std::size_t next = 0;
    for (const auto& record : records)
        for (const auto& input : record->inputs)
            if (next < tensors.size() && input.id == tensors[next].id) {
                given.push_back(input);
                ++next;
            }
    return given;
}

// The last of the records, which are in topological order, makes dst.
std::shared_ptr<merged_group> new_group(const op_list& records,
                                        const std::vector<graph::logical_tensor>& inputs) {
    auto group = std::make_shared<merged_group>();
    for (const auto& record : records) group->op_ids.push_back(record->id);
    group->names = joined_names(records);
    group->inputs = as_given(records, inputs);
    group->outputs = {records.back()->outputs[0]};
    return group;
}

std::shared_ptr<const merged_group> make_loop(const graph_record& graph,
                                              graph::expression_group&& found) {
    auto group = new_group(records_of(graph.ops, found.ops), found.inputs);
    group->work = std::move(found);
    return group;
}

std::shared_ptr<const merged_group> make_rows(const graph_record& graph,
                                              graph::merged_chain&& found) {
    row_region region{graph.settings,
                      records_of(graph.ops, found.ops),
                      std::move(found.ops),
                      {},
                      std::move(found.chain)};
    auto group = new_group(region.records, graph::outer_inputs(region.ops));
    if (region.chain.statistics)
        for (const auto& record : region.records)
            if (const auto* output = find_by_id(record->outputs, region.chain.statistics->id))
                group->outputs.push_back(*output);
    region.output_ids = ids_of(group->outputs);
    group->work = std::move(region);
    return group;
}

} // namespace

std::vector<std::shared_ptr<const merged_group>>
find_merged_groups(abi::graph graph, const graph_record& record, int policy) {
    if (!may_merge(record, policy)) return {};
    const auto ops = translate_all(record);
    const auto any = [](std::size_t) { return true; };
    if (graph::find_groups(ops, any).empty() && graph::find_row_chains(ops, any).empty()) return {};
    auto single = single_ops(graph, record);
    std::vector<std::shared_ptr<const merged_group>> merged;
    const auto is_run_alone = [&](std::size_t id) {
        const auto found = single.find(id);
        return found != single.end() && found->second;
    };
    for (auto& chain : graph::find_row_chains(ops, is_run_alone)) {
        merged.push_back(make_rows(record, std::move(chain)));
        for (const std::size_t id : merged.back()->op_ids) single.erase(id);
    }
    const auto is_single = [&](std::size_t id) { return single.contains(id); };
    for (auto& group : graph::find_groups(ops, is_single))
        merged.push_back(make_loop(record, std::move(group)));
    return merged;
}

} // namespace maskwise::onednn
