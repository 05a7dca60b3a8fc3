#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <map>
#include <span>

namespace maskwise::graph {

using shape_map = std::map<std::size_t, dims>; // by tensor id

// Adds the shapes of all operators' outputs to `shapes`, which holds the shapes of outer_inputs.
// The operators are in topological order. Each operator is a Select, has one input, or is
// element-wise with two inputs. All outputs of an operator have the shape of its input, or the
// broadcast shape of its inputs. Throws shape_error if an operator's inputs do not broadcast.
shape_map infer_shapes(std::span<const op> ops, shape_map shapes);

// The shape of the last operator's first output. Throws as infer_shapes does.
dims infer_result(std::span<const op> ops, shape_map shapes);

} // namespace maskwise::graph
