#pragma once

#include "description.hpp"

#include <cstddef>
#include <map>
#include <set>

namespace maskwise::fuzz {

// A graph around a Select, and the client's tensors at compile. The tensors may have other extents,
// ranks and layouts than at add_op. The lists may have another order or further tensors.
struct chain_description {
    graph_description graph;
    std::map<std::size_t, logical_tensor> now; // every tensor of the graph at compile, by id
    std::map<std::size_t, double> largest;     // upper bounds of the inputs' absolute values
    std::map<std::size_t, float> fills;        // inputs that have one value everywhere
    std::map<std::size_t, double> tolerance;   // of the operators' results
    std::set<std::size_t> open;                // results whose layout the library chooses
    bool lists_are_reversed = false, has_further_output = false;
    // Id of a further tensor in the list of inputs: an unrelated tensor, or an operator's result.
    // 0: there is no further tensor.
    std::size_t further_input = 0;
};

// Draws element-wise operators, SoftMax and masks from indices around one or more Selects. Maskwise
// merges many of these graphs. `later`: see chain_writer.
chain_description draw_chain(generator& random, generator& later);

// Draws a MatMul, a Select and element-wise operators on the scores, mostly a SoftMax and a second
// MatMul. oneDNN makes one partition of some of these graphs.
chain_description draw_attention(generator& random, generator& later);

std::string to_string(const chain_description& chain);

} // namespace maskwise::fuzz
