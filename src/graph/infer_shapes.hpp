#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <map>
#include <span>

namespace maskwise::graph {

using shape_map = std::map<std::size_t, dims>; // by tensor

// The shapes of all values from those of the inputs. The operators are in topological order; each
// is a Select, or has one input or the two of an element-wise operator. All outputs of an operator
// have the shape of the first. Throws shape_error with an operator's name if its inputs do not
// broadcast.
shape_map infer_shapes(std::span<const op> ops, shape_map shapes);

// The shape of the last operator's first output.
dims infer_result(std::span<const op> ops, shape_map shapes);

} // namespace maskwise::graph
