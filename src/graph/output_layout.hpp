#pragma once

#include "graph/logical_tensor.hpp"

#include <span>

namespace maskwise::graph {

// Gives `dst` its inferred shape and its strides. A layout that the client fixed stays; where shape
// or layout was open, dst becomes dense: in the order of the first of `models` that has dst's shape
// (as oneDNN follows src_0), row-major when none has. Throws invalid_argument for a layout that
// Maskwise cannot write (undef, opaque).
void complete_output(logical_tensor& dst, const dims& shape,
                     std::span<const logical_tensor* const> models);

} // namespace maskwise::graph
