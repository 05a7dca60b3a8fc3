#pragma once

#include "graph/graph_index.hpp"

// A graph's words, which a fusion is told in.
namespace maskwise::fusion {

using graph::graph_index;
using graph::logical_tensor;
using graph::op;
using graph::op_filter;
using graph::op_kind;
using graph::unknown_extent;

} // namespace maskwise::fusion
