#pragma once

#include "onednn/record/graph_record.hpp"

#include <span>

namespace maskwise::onednn {

// Whether MASKWISE_DUMP names a folder and the graph holds a Select.
bool dump_is_wanted(const graph_record& graph);

// Writes the graph to a new file in the folder MASKWISE_DUMP, in oneDNN's format for partitioned
// graphs. Each operator of a partition has the partition's id and a `backend`. The backend is
// "maskwise" if Maskwise claims the partition, else "onednn". If the file cannot be written, prints
// a line on standard error. Throws std::bad_alloc.
void dump_graph(const graph_record& graph, std::span<const abi::partition> partitions);

} // namespace maskwise::onednn
