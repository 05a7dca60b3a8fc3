#pragma once

#include "model/graph.hpp"

#include <optional>
#include <set>

namespace maskwise::bench {

// Infers the shapes of the op's outputs by oneDNN's operator descriptions. nullopt if the harness
// has no rule for the operator. Throws input_error if the inputs do not match.
std::optional<std::vector<dims>> infer_output_shapes(const op& o);

// Gives outputs their inferred shapes, dense if a shape changed. Tensors in `fixed` stay unchanged.
// If an op's inputs do not match, its outputs get an unknown rank, and the library decides whether
// the graph is valid.
void infer_graph(graph& g, const std::set<std::size_t>& fixed);

// A copy of `g` with inferred shapes where the file leaves shapes unknown.
graph with_known_shapes(const graph& g);

} // namespace maskwise::bench
