#include "onednn/partition/merged_partitions.hpp"

#include "fusion/find_row_chain.hpp"
#include "graph/op_set.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/claim_partition.hpp"
#include "onednn/record/client_settings.hpp"
#include "onednn/record/tables.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace maskwise::onednn {
namespace {

using partition_list = std::vector<abi::partition>;

struct owned_partitions {
    partition_list list;
    ~owned_partitions() { destroy(list); }
};

bool may_merge(const graph_record& record, int policy) {
    const auto is_soft_max = [](const auto& op) { return op->kind == abi::op_kind_soft_max; };
    return policy == abi::policy_fusion && record.has_select &&
           record.settings.engine_kind == abi::engine_cpu && !real_is_newer_than_known() &&
           !subgraph_dump_wanted() && std::ranges::any_of(record.ops, is_soft_max);
}

using id_lists = std::vector<std::vector<std::size_t>>;

// The operators that the real library supports as single-operator partitions.
using single_op_set = std::set<std::size_t>;

single_op_set single_ops(const graph_record& record, const partition_list& real,
                         const id_lists& ids) {
    single_op_set single;
    for (std::size_t i = 0; i < real.size(); ++i) {
        const auto op = ids[i].size() == 1 ? find_op(record.ops, ids[i][0]) : nullptr;
        if (op && is_supported(real[i])) single.insert(op->id);
    }
    return single;
}

using group_map = std::map<std::size_t, std::shared_ptr<const merged_group>>; // by operator id

// Skips repeated ids, because oneDNN uses only the first operator of an id.
std::vector<graph::op> translate_all(const graph_record& record) {
    std::vector<graph::op> ops;
    std::set<std::size_t> seen;
    for (const auto& op : record.ops)
        if (seen.insert(op->id).second) ops.push_back(translate(*op));
    return ops;
}

// `merged.ops` are in topological order, so the last operator makes dst.
std::shared_ptr<const merged_group> make_group(const graph_record& graph,
                                               fusion::merged_chain&& merged) {
    auto group = std::make_shared<merged_group>();
    auto records = records_of(graph.ops, merged.ops);
    group->names = joined_names(records);
    group->outputs = {records.back()->outputs[0]};
    for (const auto& record : records) {
        group->op_ids.push_back(record->id);
        std::ranges::copy_if(
            record->inputs, std::back_inserter(group->inputs),
            [&](const auto& input) { return !graph::makes(merged.ops, input.id); });
        const auto& statistics = merged.chain.statistics;
        if (const auto* output = statistics ? find_by_id(record->outputs, statistics->id) : nullptr)
            group->outputs.push_back(*output);
    }
    group->region = {graph.settings, std::move(records), std::move(merged.ops),
                     ids_of(group->outputs), fusion::block{std::move(merged.chain), {}}};
    return group;
}

group_map find_merged_groups(const graph_record& record, const single_op_set& single) {
    const auto ops = translate_all(record);
    const auto stands_alone = [&](std::size_t id) { return single.contains(id); };
    group_map groups;
    for (auto& chain : fusion::find_row_chains(ops, stands_alone)) {
        const auto group = make_group(record, std::move(chain));
        for (const std::size_t id : group->op_ids) groups[id] = group;
    }
    return groups;
}

// Lists the partitions outside groups, and the last member of each group.
std::vector<listed_partition> without_members(const id_lists& ids, const group_map& groups) {
    std::vector<listed_partition> list;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto member = ids[i].size() == 1 ? groups.find(ids[i][0]) : groups.end();
        if (member == groups.end())
            list.push_back({i, nullptr});
        else if (member->second->op_ids.back() == ids[i][0])
            list.push_back({i, member->second});
    }
    return list;
}

std::vector<listed_partition> in_topological_order(const std::vector<listed_partition>& list,
                                                   const partition_list& real) {
    std::vector<graph::node_ports> ports;
    ports.reserve(list.size());
    for (const auto& [index, group] : list)
        ports.push_back({group ? ids_of(group->inputs) : input_ids(real[index]),
                         group ? ids_of(group->outputs) : output_ids(real[index])});
    std::vector<listed_partition> ordered;
    for (const std::size_t i : graph::topological_order(ports)) ordered.push_back(list[i]);
    return ordered;
}

void claim(const graph_record& graph, const listed_partition& listed, abi::partition handle) {
    if (listed.group)
        claim_merged(graph, listed.group, handle);
    else
        claim_partition(graph, handle);
}

} // namespace

std::vector<listed_partition> list_partitions(abi::graph graph, const graph_record& record,
                                              int policy) {
    if (!may_merge(record, policy)) return {};
    owned_partitions real{partition_list(partition_count(graph))};
    if (real.list.empty() ||
        real_graph_get_partitions(graph, real.list.size(), real.list.data()) != abi::success)
        return {};
    id_lists ids(real.list.size());
    std::ranges::transform(real.list, ids.begin(), op_ids);
    const auto groups = find_merged_groups(record, single_ops(record, real.list, ids));
    if (groups.empty()) return {};
    return in_topological_order(without_members(ids, groups), real.list);
}

// If the client requests more partitions than exist, the real library creates empty objects for the
// rest.
abi::status get_listed_partitions(abi::graph graph, const graph_record& record, std::size_t num,
                                  abi::partition* partitions) {
    const auto& listed = record.listed;
    owned_partitions real, handed_out;
    abi::status status = abi::success;
    const auto claimed = guarded([&] {
        const std::size_t dropped = partition_count(graph) - listed.size();
        real.list.resize(dropped + std::max(num, listed.size()));
        handed_out.list.reserve(num);
        status = real_graph_get_partitions(graph, real.list.size(), real.list.data());
        if (status != abi::success) return real.list.clear();
        for (std::size_t i = 0; i < num; ++i) {
            const std::size_t index = i < listed.size() ? listed[i].index : dropped + i;
            handed_out.list.push_back(std::exchange(real.list[index], nullptr));
            if (i < listed.size()) claim(record, listed[i], handed_out.list.back());
        }
    });
    if (status != abi::success || claimed != abi::success)
        return status != abi::success ? status : claimed;
    std::ranges::copy(std::exchange(handed_out.list, {}), partitions);
    return abi::success;
}

void destroy(std::span<abi::partition> partitions) {
    for (abi::partition& partition : partitions) {
        if (partition == nullptr) continue;
        tables().claims.erase(partition);
        real_partition_destroy(std::exchange(partition, nullptr));
    }
}

const merged_group* find_merged(abi::const_partition partition) {
    const auto* const claim = tables().claims.find(partition);
    const auto* const group =
        claim != nullptr ? std::get_if<std::shared_ptr<const merged_group>>(&claim->form) : nullptr;
    return group != nullptr ? group->get() : nullptr;
}

} // namespace maskwise::onednn
