#pragma once

#include "graph/graph_index.hpp"

// The names of src/graph that the fusion code uses.
namespace maskwise::fusion {

using graph::graph_index;
using graph::logical_tensor;
using graph::op;
using graph::op_filter;
using graph::op_kind;
using graph::unknown_extent;

} // namespace maskwise::fusion
