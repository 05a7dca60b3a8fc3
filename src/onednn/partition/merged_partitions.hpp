#pragma once

#include "onednn/partition/claim.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace maskwise::onednn {

// After a filter under this policy: the partitions that the client will get, in topological order;
// empty where nothing is merged. Throws what find_merged_groups throws.
std::vector<listed_partition> list_partitions(abi::graph graph, const graph_record& record,
                                              int policy);

// Hands out the listed partitions of a graph in which something is merged and claims those that are
// Maskwise's. The contract of dnnl_graph_graph_get_partitions.
abi::status get_listed_partitions(abi::graph graph, const graph_record& record, std::size_t num,
                                  abi::partition* partitions);

// Destroys the handles, forgets their claims and leaves nulls.
void destroy(std::span<abi::partition> partitions);

// The group that the handle stands for, or null where nothing was merged into it. Any thread.
const merged_group* find_merged(abi::const_partition partition);

} // namespace maskwise::onednn
