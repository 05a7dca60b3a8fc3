#pragma once

#include "graph/op.hpp"

#include <optional>
#include <span>
#include <vector>

namespace maskwise::graph {

// A client may compile with other shapes and types than it gave at add_op. Decisions that rest on
// those, such as which input is the row, are then made again on the operators as described now.
//
// The operators are in topological order; the last makes the result. The given lists describe the
// operators' outer inputs and the result now, and may hold other tensors. Values between the
// operators follow: a type of the graph becomes the type first given for it, and shapes are
// inferred. Second outputs stay as they are; layouts inside become `any`. Nothing where the
// description is the recorded one. Throws argument_error where an outer input or the result is
// not given, and shape_error where shapes do not broadcast.
std::optional<std::vector<op>> redescribe(std::span<const op> ops,
                                          std::span<const logical_tensor> given_inputs,
                                          std::span<const logical_tensor> given_outputs);

} // namespace maskwise::graph
