#pragma once

#include "model/graph.hpp"

#include <optional>
#include <set>

namespace maskwise::bench {

// Infers the shapes of the op's outputs by oneDNN's operator descriptions. Empty if the harness has
// no rule for the operator. Throws input_error if the inputs do not match.
std::optional<std::vector<dims>> infer_output_shapes(const op& o);

// Gives every output its inferred shape, dense if the shape changed. If inputs do not match, the
// rank becomes unknown, and the case asks the library. Tensors in `keep` stay unchanged.
void infer_graph(graph& g, const std::set<std::size_t>& keep);

// Fills in only shapes that the file leaves unknown, in a copy for the oracle and the filler.
graph with_known_shapes(const graph& g);

} // namespace maskwise::bench
