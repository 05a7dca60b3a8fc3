#pragma once

#include "onednn/partition/claim.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace maskwise::onednn {

// Returns the partitions that the client gets after dnnl_graph_graph_filter, in topological order.
// Returns none if no partitions are merged. Throws std::bad_alloc, and argument_error if a tensor
// cannot be read.
std::vector<listed_partition> list_partitions(abi::graph graph, const graph_record& record,
                                              int policy);

// Does the work of dnnl_graph_graph_get_partitions for a graph with listed partitions. Claims the
// partitions that Maskwise runs.
abi::status get_listed_partitions(abi::graph graph, const graph_record& record, std::size_t num,
                                  abi::partition* partitions);

// Destroys the handles, erases their claims and sets the handles to null.
void destroy(std::span<abi::partition> partitions);

// Returns the group that the handle represents, or null. Any thread may call this function.
const merged_group* find_merged(abi::const_partition partition);

} // namespace maskwise::onednn
