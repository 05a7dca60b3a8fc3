#include "onednn/partition/merged_partitions.hpp"

#include "graph/op_set.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/claim_partition.hpp"
#include "onednn/partition/partition_list.hpp"
#include "onednn/record/tables.hpp"

#include <algorithm>
#include <map>

namespace maskwise::onednn {
namespace {

// One partition of the list that the client gets.
struct listed_partition {
    abi::partition handle;
    std::shared_ptr<const merged_group> group; // null where it is as oneDNN made it
};

graph::node_ports ports_of(const listed_partition& listed) {
    if (listed.group) return {ids_of(listed.group->inputs), ids_of(listed.group->outputs)};
    return {ids_of(input_ports(listed.handle)), ids_of(output_ports(listed.handle))};
}

using group_map = std::map<std::size_t, std::shared_ptr<const merged_group>>; // by operator

group_map groups_by_op(const graph_record& graph) {
    group_map groups;
    for (const auto& group : graph.merged)
        for (const std::size_t id : group->op_ids) groups[id] = group;
    return groups;
}

// The list without the members of groups, but for the last of each; those go to `dropped`.
std::vector<listed_partition> list_partitions(const graph_record& graph,
                                              const partition_list& partitions,
                                              partition_list& dropped) {
    const auto groups = groups_by_op(graph);
    std::vector<listed_partition> list;
    for (auto* const partition : partitions) {
        const auto ids = op_ids(partition);
        const auto found = ids.size() == 1 ? groups.find(ids[0]) : groups.end();
        if (found == groups.end())
            list.push_back({partition, nullptr});
        else if (found->second->op_ids.back() == ids[0])
            list.push_back({partition, found->second});
        else
            dropped.push_back(partition);
    }
    return list;
}

// Makes of the real library's partitions those that the client gets.
void merge(const graph_record& graph, partition_list& partitions) {
    partition_list dropped;
    const auto list = list_partitions(graph, partitions, dropped);
    std::vector<graph::node_ports> ports;
    ports.reserve(list.size());
    for (const auto& listed : list) ports.push_back(ports_of(listed));
    partition_list merged;
    for (const std::size_t i : graph::topological_order(ports)) {
        merged.push_back(list[i].handle);
        if (list[i].group)
            claim_merged(graph, list[i].group, list[i].handle);
        else
            claim_partition(graph, list[i].handle);
    }
    partitions = std::move(merged);
    destroy(dropped);
}

} // namespace

std::size_t partitions_saved(const graph_record& record) {
    std::size_t count = 0;
    for (const auto& group : record.merged) count += group->op_ids.size() - 1;
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
        real.resize(std::max(num + partitions_saved(record), real_count));
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

std::shared_ptr<const merged_group> find_merged(abi::const_partition partition) {
    const auto claim = tables().claims.find(partition);
    const auto* const group =
        claim ? std::get_if<std::shared_ptr<const merged_group>>(&claim->form) : nullptr;
    return group != nullptr ? *group : nullptr;
}

} // namespace maskwise::onednn
