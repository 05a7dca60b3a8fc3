#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace maskwise::graph {

// Functions on lists of operators. Ids identify tensors and operators.

// Whether an operator of the list outputs the tensor.
bool makes(std::span<const op> ops, std::size_t tensor);
// Whether an operator of the list reads the tensor.
bool reads(std::span<const op> ops, std::size_t tensor);

// The inputs that no operator of the list outputs, one entry per input slot.
std::vector<logical_tensor> outer_inputs(std::span<const op> ops);

// The operators around a chain. The chain's input depends on the operators of `before`. `after` has
// all others. Neither list contains the chain's operators.
struct division {
    std::vector<op> before, after; // each in the order of `ops`
};
division divide(std::span<const op> ops, std::span<const std::size_t> chain,
                std::size_t chain_input);

struct node_ports {
    std::vector<std::size_t> inputs, outputs; // tensors
};

// Returns the nodes' indexes. Repeatedly picks the first node whose inputs are all available, so
// nodes in topological order are not reordered. Nodes that depend on a cycle are missing.
std::vector<std::size_t> topological_order(std::span<const node_ports> nodes);

} // namespace maskwise::graph
