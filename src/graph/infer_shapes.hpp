#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <map>
#include <span>

namespace maskwise::graph {

using shape_map = std::map<std::size_t, dims>; // by tensor

// The shapes of all values, given those of all inputs. The operators are in topological order; each
// has one input, the two of an element-wise operator, or is a Select. All outputs of an operator
// have the shape of the first. Throws shape_error with the name of an operator if its inputs do not
// broadcast.
shape_map infer_shapes(std::span<const op> ops, shape_map shapes);

// Of these, that of the last operator's first output.
dims infer_result(std::span<const op> ops, shape_map shapes);

} // namespace maskwise::graph
