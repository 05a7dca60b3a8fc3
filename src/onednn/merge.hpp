#pragma once

#include "graph/expression_group.hpp"
#include "onednn/abi.hpp"
#include "onednn/compile.hpp"
#include "onednn/records.hpp"
#include "onednn/region.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

// Partitions of one operator that the client gets as one, and what it can ask about it.
struct merged_record {
    std::optional<graph::expression_group> group;     // run by one loop
    std::shared_ptr<const region_record> rows;        // or as a chain of rows
    std::vector<graph::op> ops;                       // in topological order, as op_ids
    std::string names;                                // of all, for verbose lines
    std::vector<std::size_t> op_ids;                  // the last one's handle is kept
    std::vector<abi::logical_tensor> inputs, outputs; // as given at add_op, slot by slot
};

// After a filter: finds what will be merged under this policy, so that the count can be told before
// the partitions are taken. Throws std::bad_alloc.
void note_filter(abi::graph graph, graph_record& record, int policy);

// By how many the client gets fewer partitions than the real library makes.
std::size_t merged_away(const graph_record& record);

// Partitions of a graph in which something is merged, in topological order; claims what is
// Maskwise's. The contract of dnnl_graph_graph_get_partitions.
abi::status get_merged_partitions(abi::graph graph, const graph_record& record, std::size_t num,
                                  abi::partition* partitions);

// What the handle stands for, or null where nothing was merged into it. Any thread.
std::shared_ptr<const merged_record> find_merged(abi::const_partition partition);

// Compiles a merged partition and records the result for its handle. Any thread.
abi::status compile_merged(const std::shared_ptr<const partition_record>& partition,
                           const compile_call& call);

} // namespace maskwise::onednn
