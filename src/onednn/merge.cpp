#include "onednn/merge.hpp"

#include "base/verbose.hpp"
#include "graph/row_chain.hpp"
#include "jit/expression_code.hpp"
#include "onednn/claim.hpp"
#include "onednn/dump.hpp"
#include "onednn/guard.hpp"
#include "onednn/real_library.hpp"
#include "onednn/real_partition.hpp"
#include "onednn/translate_op.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>

namespace maskwise::onednn {
namespace {

using partition_list = std::vector<abi::partition>;

void destroy(partition_list& partitions) {
    for (abi::partition& each : partitions) {
        if (each == nullptr) continue;
        forget_partition(each);
        call_real(&real_library::partition_destroy, each);
        each = nullptr;
    }
}

struct owned_partitions {
    partition_list list;
    ~owned_partitions() { destroy(list); }
};

// Where nothing may be merged the client sees what oneDNN made.
bool may_merge(const graph_record& record, int policy) {
    return policy == abi::policy_fusion && record.has_select && record.ops.size() > 1 &&
           record.engine_kind == abi::engine_cpu && !real_is_newer_than_known() &&
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
    for (auto* const each : partitions.list) {
        const auto ids = op_ids(each);
        std::uint8_t supported = 0;
        call_real(&real_library::partition_is_supported, abi::const_partition(each), &supported);
        const auto op = ids.size() == 1 ? find_op(record, ids[0]) : nullptr;
        if (op && (supported != 0 || op->kind == abi::op_kind_select))
            found[ids[0]] = supported != 0;
    }
    return found;
}

// The client's own tensors for these, as they were given at add_op.
std::vector<abi::logical_tensor> as_given(const graph_record& graph,
                                          const std::vector<std::size_t>& op_ids,
                                          const std::vector<graph::logical_tensor>& tensors) {
    std::vector<abi::logical_tensor> given;
    std::size_t next = 0;
    for (const std::size_t id : op_ids)
        for (const auto& input : find_op(graph, id)->inputs)
            if (next < tensors.size() && input.id == tensors[next].id) {
                given.push_back(input);
                ++next;
            }
    return given;
}

// The record of operators in topological order, the last of which makes dst.
std::shared_ptr<merged_record> make_record(const graph_record& graph, std::vector<graph::op> ops,
                                           const std::vector<graph::logical_tensor>& inputs) {
    auto record = std::make_shared<merged_record>();
    std::vector<std::shared_ptr<const op_record>> given;
    for (const auto& op : ops) {
        record->op_ids.push_back(op.id);
        given.push_back(find_op(graph, op.id));
    }
    record->names = joined_names(given);
    record->inputs = as_given(graph, record->op_ids, inputs);
    record->outputs = {given.back()->outputs[0]};
    record->ops = std::move(ops);
    return record;
}

std::shared_ptr<const merged_record> make_loop(const graph_record& graph,
                                               graph::expression_group&& group) {
    auto record = make_record(graph, group.ops, group.inputs);
    record->group = std::move(group);
    return record;
}

// Slot by slot, but for the values between the operators.
std::vector<graph::logical_tensor> outer_inputs(const std::vector<graph::op>& ops) {
    std::set<std::size_t> inner;
    for (const auto& op : ops)
        for (const auto& output : op.outputs) inner.insert(output.id);
    std::vector<graph::logical_tensor> inputs;
    for (const auto& op : ops)
        for (const auto& input : op.inputs)
            if (!inner.contains(input.id)) inputs.push_back(input);
    return inputs;
}

std::shared_ptr<const merged_record> make_rows(const graph_record& graph,
                                               graph::merged_chain&& found) {
    const auto inputs = outer_inputs(found.ops);
    auto record = make_record(graph, std::move(found.ops), inputs);
    auto rows = std::make_shared<region_record>();
    rows->settings = {graph.engine_kind, graph.fpmath_mode, graph.fpmath_applies_to_int};
    for (const std::size_t id : record->op_ids) rows->ops.push_back(find_op(graph, id));
    if (found.chain.statistics)
        for (const auto& op : rows->ops)
            if (const auto* output = find_by_id(op->outputs, found.chain.statistics->id))
                record->outputs.push_back(*output);
    rows->output_ids = ids_of(record->outputs);
    rows->chain = std::move(found.chain);
    record->rows = std::move(rows);
    return record;
}

// One partition of the list that the client gets.
struct listed {
    abi::partition handle;
    std::shared_ptr<const merged_record> merged;
    std::vector<std::size_t> inputs, outputs; // ids of tensors
};

// Always the earliest partition of those whose inputs are there: the order of the list where it is
// topological already.
std::vector<std::size_t> topological_order(const std::vector<listed>& list) {
    std::map<std::size_t, std::size_t> makers;
    for (std::size_t i = 0; i < list.size(); ++i)
        for (const std::size_t id : list[i].outputs) makers.emplace(id, i);
    std::vector<std::set<std::size_t>> users(list.size());
    std::vector<std::size_t> missing(list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
        for (const std::size_t id : list[i].inputs)
            if (const auto maker = makers.find(id); maker != makers.end() && maker->second != i)
                missing[i] += users[maker->second].insert(i).second ? 1U : 0U;
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < list.size(); ++i)
        if (missing[i] == 0) ready.push(i);
    std::vector<std::size_t> order;
    while (!ready.empty()) {
        const std::size_t next = ready.top();
        ready.pop();
        order.push_back(next);
        for (const std::size_t user : users[next])
            if (--missing[user] == 0) ready.push(user);
    }
    return order;
}

void claim_merged(const graph_record& graph, const listed& from) {
    auto record = std::make_shared<partition_record>();
    record->real_supports = true;
    record->fpmath_mode = graph.fpmath_mode;
    record->fpmath_applies_to_int = graph.fpmath_applies_to_int;
    record->merged = from.merged;
    call_real(&real_library::partition_get_id, abi::const_partition(from.handle), &record->id);
    record->select.name = from.merged->names;
    if (verbose_level() >= 1)
        print_verbose("claim," + std::to_string(record->id) + ',' + record->select.name +
                      ",merged from " + std::to_string(from.merged->op_ids.size()) + " partitions");
    tables().partitions.insert(from.handle, std::move(record));
}

// Takes the members of groups out of the list; what is left is in topological order.
void merge(const graph_record& graph, partition_list& partitions) {
    std::map<std::size_t, std::shared_ptr<const merged_record>> groups; // by operator
    for (const auto& each : graph.merged)
        for (const std::size_t id : each->op_ids) groups[id] = each;
    std::vector<listed> list;
    partition_list dropped;
    for (auto* const each : partitions) {
        const auto ids = op_ids(each);
        const auto found = ids.size() == 1 ? groups.find(ids[0]) : groups.end();
        const auto group = found == groups.end() ? nullptr : found->second;
        if (group && group->op_ids.back() != ids[0])
            dropped.push_back(each);
        else if (group)
            list.push_back({each, group, ids_of(group->inputs), ids_of(group->outputs)});
        else
            list.push_back({each, nullptr, ids_of(input_ports(each)), ids_of(output_ports(each))});
    }
    partition_list merged;
    for (const std::size_t i : topological_order(list)) {
        merged.push_back(list[i].handle);
        if (list[i].merged)
            claim_merged(graph, list[i]);
        else
            claim_partition(graph, list[i].handle);
    }
    partitions = std::move(merged);
    destroy(dropped);
}

} // namespace

void note_filter(abi::graph graph, graph_record& record, int policy) {
    record.merged.clear();
    if (!may_merge(record, policy)) return;
    const auto ops = translate_all(record);
    const auto any = [](std::size_t) { return true; };
    if (graph::find_groups(ops, any).empty() && graph::find_row_chains(ops, any).empty()) return;
    auto single = single_ops(graph, record);
    std::vector<std::shared_ptr<const merged_record>> merged;
    const auto is_supported = [&](std::size_t id) {
        const auto found = single.find(id);
        return found != single.end() && found->second;
    };
    for (auto& chain : graph::find_row_chains(ops, is_supported)) {
        merged.push_back(make_rows(record, std::move(chain)));
        for (const std::size_t id : merged.back()->op_ids) single.erase(id);
    }
    const auto is_single = [&](std::size_t id) { return single.contains(id); };
    for (auto& group : graph::find_groups(ops, is_single))
        merged.push_back(make_loop(record, std::move(group)));
    record.merged = std::move(merged);
}

std::size_t merged_away(const graph_record& record) {
    std::size_t count = 0;
    for (const auto& each : record.merged) count += each->op_ids.size() - 1;
    return count;
}

// Where the client asks for more partitions than there are, the hollow objects that the real
// library gives it follow at the end.
abi::status get_merged_partitions(abi::graph graph, const graph_record& record, std::size_t num,
                                  abi::partition* partitions) {
    std::size_t real_count = 0;
    call_real(&real_library::graph_get_partition_num, abi::const_graph(graph), &real_count);
    partition_list real, hollow;
    abi::status status = abi::success;
    const auto merged = guarded([&] {
        real.resize(std::max(num + merged_away(record), real_count));
        status = call_real(&real_library::graph_get_partitions, graph, real.size(), real.data());
        if (status != abi::success) return real.clear();
        hollow.assign(real.begin() + static_cast<std::ptrdiff_t>(real_count), real.end());
        real.resize(real_count);
        merge(record, real);
        real.insert(real.end(), hollow.begin(), hollow.end());
    });
    if (status != abi::success) return status;
    if (merged != abi::success) {
        destroy(real);
        destroy(hollow);
        return merged;
    }
    const std::size_t given = std::min(num, real.size());
    std::copy_n(real.begin(), given, partitions);
    partition_list rest(real.begin() + static_cast<std::ptrdiff_t>(given), real.end());
    destroy(rest);
    return abi::success;
}

std::shared_ptr<const merged_record> find_merged(abi::const_partition partition) {
    const auto record = tables().partitions.find(partition);
    return record ? record->merged : nullptr;
}

} // namespace maskwise::onednn
