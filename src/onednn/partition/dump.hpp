#pragma once

#include "onednn/record/graph_record.hpp"

#include <span>

namespace maskwise::onednn {

// Whether MASKWISE_DUMP names a folder and the graph holds a Select.
bool dump_is_wanted(const graph_record& graph);

// Writes the graph to a new file there, in the format of oneDNN's files of partitioned graphs: each
// operator has its partition, and `backend` names the library that runs it. If the file cannot be
// written, prints a line on standard error. Throws std::bad_alloc.
void dump_graph(const graph_record& graph, std::span<const abi::partition> partitions);

} // namespace maskwise::onednn
