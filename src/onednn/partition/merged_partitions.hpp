#pragma once

#include "onednn/record/claim.hpp"

#include <cstddef>
#include <memory>

namespace maskwise::onednn {

// By how many the client gets fewer partitions than the real library makes.
std::size_t partitions_saved(const graph_record& record);

// Partitions of a graph in which something is merged, in topological order; claims those that are
// Maskwise's. The contract of dnnl_graph_graph_get_partitions.
abi::status get_merged_partitions(abi::graph graph, const graph_record& record, std::size_t num,
                                  abi::partition* partitions);

// The group that the handle stands for, or null where nothing was merged into it. Any thread.
std::shared_ptr<const merged_group> find_merged(abi::const_partition partition);

} // namespace maskwise::onednn
