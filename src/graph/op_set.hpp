#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace maskwise::graph {

// How values run between sets of operators. Tensors and operators are named by id.

// Whether an operator of the set makes the tensor.
bool makes(std::span<const op> ops, std::size_t tensor);
// Whether an operator of the set reads it.
bool reads(std::span<const op> ops, std::size_t tensor);

// The inputs of the set that the set does not make, slot by slot.
std::vector<logical_tensor> outer_inputs(std::span<const op> ops);

// Operators in topological order, divided by a chain among them: those that the chain's first value
// needs run before the chain, all others after it. Members of the chain are in neither.
struct division {
    std::vector<op> before, after; // in the order of the whole
};
division divide(std::span<const op> ops, std::span<const std::size_t> chain,
                std::size_t chain_input);

// A node of a graph of partitions.
struct node_ports {
    std::vector<std::size_t> inputs, outputs; // tensors
};

// Always the earliest node of those that have all their inputs: a list that is in topological order
// stays as it is.
std::vector<std::size_t> topological_order(std::span<const node_ports> nodes);

} // namespace maskwise::graph
