#pragma once

#include "model/graph.hpp"

#include <optional>
#include <set>

namespace maskwise::bench {

// Shapes of the op's outputs from those of its inputs, by oneDNN's operator descriptions; empty
// for an operator that the harness has no rule for. Throws input_error when the inputs do not fit.
std::optional<std::vector<dims>> infer_output_shapes(const op& o);

// Gives every output its inferred shape, dense where the shape changed. Where inputs do not fit
// the rank becomes unknown: the case then asks the library for its answer. Ids in `keep` stay as
// they are.
void infer_graph(graph& g, const std::set<std::size_t>& keep);

// Fills only what the file leaves unknown, in a copy: what the oracle and the filler work on.
graph with_known_shapes(const graph& g);

} // namespace maskwise::bench
