#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace maskwise::graph {

// Sets of operators and the values between them. Ids name tensors and operators.

// Whether an operator of the set makes the tensor.
bool makes(std::span<const op> ops, std::size_t tensor);
// Whether an operator of the set reads it.
bool reads(std::span<const op> ops, std::size_t tensor);

// The inputs that no operator of the set makes, one entry per slot.
std::vector<logical_tensor> outer_inputs(std::span<const op> ops);

// Operators in topological order, divided by a chain: those that the chain's first value depends on
// run before the chain, all others after it. Neither part has members of the chain.
struct division {
    std::vector<op> before, after; // in the order of the whole
};
division divide(std::span<const op> ops, std::span<const std::size_t> chain,
                std::size_t chain_input);

// A node of a graph of partitions.
struct node_ports {
    std::vector<std::size_t> inputs, outputs; // tensors
};

// Repeatedly takes the earliest node whose inputs are all available, so a list in topological order
// keeps its order.
std::vector<std::size_t> topological_order(std::span<const node_ports> nodes);

} // namespace maskwise::graph
