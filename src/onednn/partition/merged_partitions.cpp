#include "onednn/partition/merged_partitions.hpp"

#include "graph/op_set.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/claim_partition.hpp"
#include "onednn/partition/find_merged_groups.hpp"
#include "onednn/record/client_settings.hpp"
#include "onednn/record/tables.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::onednn {
namespace {

using partition_list = std::vector<abi::partition>;

struct owned_partitions {
    partition_list list;
    ~owned_partitions() { destroy(list); }
};

// Where nothing may be merged the client sees oneDNN's partitions.
bool may_merge(const graph_record& record, int policy) {
    return policy == abi::policy_fusion && record.has_select && record.ops.size() > 1 &&
           record.settings.engine_kind == abi::engine_cpu && !real_is_newer_than_known() &&
           !subgraph_dump_wanted();
}

using id_lists = std::vector<std::vector<std::size_t>>;

single_op_set single_ops(const graph_record& record, const partition_list& real,
                         const id_lists& ids) {
    single_op_set single;
    for (std::size_t i = 0; i < real.size(); ++i) {
        const auto op = ids[i].size() == 1 ? find_op(record.ops, ids[i][0]) : nullptr;
        if (op && is_supported(real[i])) single.insert(op->id);
    }
    return single;
}

// The members of a group go, but for the last, which stands for all.
std::vector<listed_partition> without_members(const id_lists& ids, const group_map& groups) {
    std::vector<listed_partition> list;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto found = ids[i].size() == 1 ? groups.find(ids[i][0]) : groups.end();
        if (found == groups.end())
            list.push_back({i, nullptr});
        else if (found->second->op_ids.back() == ids[i][0])
            list.push_back({i, found->second});
    }
    return list;
}

std::vector<listed_partition> in_topological_order(const std::vector<listed_partition>& list,
                                                   const partition_list& real) {
    std::vector<graph::node_ports> ports;
    ports.reserve(list.size());
    for (const auto& [index, group] : list)
        ports.push_back({ids_of(group ? group->inputs : input_ports(real[index])),
                         ids_of(group ? group->outputs : output_ports(real[index]))});
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

// The client may ask for more partitions than there are: it then gets the hollow objects that the
// real library makes for the rest.
abi::status get_listed_partitions(abi::graph graph, const graph_record& record, std::size_t num,
                                  abi::partition* partitions) {
    const auto& listed = record.listed;
    owned_partitions real, given;
    abi::status status = abi::success;
    const auto claimed = guarded([&] {
        const std::size_t dropped = partition_count(graph) - listed.size();
        real.list.resize(dropped + std::max(num, listed.size()));
        given.list.reserve(num);
        status = real_graph_get_partitions(graph, real.list.size(), real.list.data());
        if (status != abi::success) return real.list.clear();
        for (std::size_t i = 0; i < num; ++i) {
            const std::size_t index = i < listed.size() ? listed[i].index : dropped + i;
            given.list.push_back(std::exchange(real.list[index], nullptr));
            if (i < listed.size()) claim(record, listed[i], given.list.back());
        }
    });
    if (status != abi::success || claimed != abi::success)
        return status != abi::success ? status : claimed;
    std::ranges::copy(std::exchange(given.list, {}), partitions);
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
