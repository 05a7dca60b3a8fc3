#pragma once

#include "description.hpp"

#include <cstddef>
#include <map>
#include <set>

namespace maskwise::fuzz {

// A graph around a Select, and the client's tensors at compile. The tensors may differ from those
// at add_op in extents, rank and layout. The lists given to compile may be reversed or have further
// tensors.
struct chain_description {
    graph_description graph;
    std::map<std::size_t, logical_tensor> now; // every tensor of the graph at compile, by id
    std::map<std::size_t, double> largest;     // upper bounds of the inputs' absolute values
    std::map<std::size_t, float> fills;        // inputs that have one value everywhere
    std::map<std::size_t, double> tolerance;   // allowed absolute errors of the operators' results
    std::set<std::size_t> open;                // results whose layout the library chooses
    bool lists_are_reversed = false, has_further_output = false;
    // Id of a further input: an unrelated tensor or an operator's result; 0: none.
    std::size_t further_input = 0;
};

// Draws element-wise operators, SoftMax and GenIndex masks around one or more Selects. Maskwise
// merges many of these graphs. `later`: see chain_writer.
chain_description draw_chain(generator& random, generator& later);

// Draws attention: a MatMul, a Select and element-wise operators on the scores, mostly also a
// SoftMax and a second MatMul. oneDNN fuses some of these graphs into one partition.
chain_description draw_attention(generator& random, generator& later);

std::string to_string(const chain_description& chain);

} // namespace maskwise::fuzz
