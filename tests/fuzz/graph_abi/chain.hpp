#pragma once

#include "description.hpp"

#include <cstddef>
#include <map>
#include <set>

namespace maskwise::fuzz {

// A graph around a Select, and the client's tensors at compile: other extents, ranks and layouts
// than at add_op, and lists in another order or with unrelated tensors.
struct chain_description {
    graph_description graph;
    std::map<std::size_t, logical_tensor> now; // every tensor of the graph, by id
    std::map<std::size_t, double> largest;     // of those that the client fills: a bound
    std::map<std::size_t, float> fills;        // values of inputs that have one value everywhere
    std::map<std::size_t, double> tolerance;   // of those that operators make
    std::set<std::size_t> open;                // made, in a layout that the library chooses
    bool lists_are_reversed = false, has_further_output = false;
    // in each list: an unrelated tensor, or a value that operators compute
    std::size_t further_input = 0;
};

// Element-wise operators, SoftMax and masks of indices around one or more Selects: graphs that are
// merged to loops and rows, and similar ones. `later`: see chain_writer.
chain_description draw_chain(generator& random, generator& later);

// MatMul, the same on its scores, MatMul: one partition of oneDNN's.
chain_description draw_attention(generator& random, generator& later);

std::string to_string(const chain_description& chain);

} // namespace maskwise::fuzz
