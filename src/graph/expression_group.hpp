#pragma once

#include "graph/graph_index.hpp"
#include "jit/expression.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace maskwise::graph {

// Operators around a Select that make one value by element-wise work, so that one loop can run them
// all: a tree with inner values that no other operator uses. Only the root's value leaves the tree,
// so the tree is convex.
struct expression_group {
    std::vector<op> ops; // in topological order; the root is last
    jit::expression expression;
    std::vector<logical_tensor> inputs; // of the expression, in its order; each once
};

// The groups of two operators and more in a graph, each operator in one at most. `stands_alone`
// tells by id whether the operator is a partition of its own that may be merged. A
// group depends on facts of the graph alone, and holds for every shape and layout that the client
// may compile it with.
std::vector<expression_group> find_groups(std::span<const op> graph, const op_filter& stands_alone);

} // namespace maskwise::graph
