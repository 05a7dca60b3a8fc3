#pragma once

#include "onednn/record/graph_record.hpp"

#include <span>

namespace maskwise::onednn {

// Whether MASKWISE_DUMP names a folder and the graph holds a Select.
bool dump_is_wanted(const graph_record& graph);

// Writes the graph to a new file there, in the form of oneDNN's own files of partitioned graphs:
// each operator has its partition, and `backend` says whose it is. A file that cannot be written is
// a line on standard error. Throws std::bad_alloc.
void dump_graph(const graph_record& graph, std::span<const abi::partition> partitions);

} // namespace maskwise::onednn
