#pragma once

#include "graph/op.hpp"

#include <optional>
#include <span>
#include <vector>

namespace maskwise::graph {

// Returns `ops` with the shapes at compile, which may differ from those at add_op. The caller then
// repeats decisions that depend on shapes, such as which input is the row. `ops` are in topological
// order. `inputs` holds the outer inputs of `ops` as the client describes them at compile, and may
// hold other tensors. The shapes of values between the operators are inferred. Types and second
// outputs stay unchanged; layouts become `any`. Returns nullopt if no shape has changed. Throws
// argument_error if an outer input is missing, and shape_error if shapes do not broadcast.
std::optional<std::vector<op>> redescribe(std::span<const op> ops,
                                          std::span<const logical_tensor> inputs);

} // namespace maskwise::graph
