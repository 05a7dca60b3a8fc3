#pragma once

#include "graph/op.hpp"

#include <optional>
#include <span>
#include <vector>

namespace maskwise::graph {

// A client may compile with other shapes and types than it gave at add_op. Decisions that rest on
// those, such as which input is the row, are then made again on the operators as described now.
//
// `inputs` enter the operators and `result` leaves them, as recorded. The lists that are given
// describe them now, and may hold other tensors. Values between the operators follow: a type of the
// graph becomes what is first given for it, and shapes are inferred. Second outputs stay as they
// are; layouts inside become `any`. Nothing where the description is the recorded one. Throws
// invalid_argument where a port is not given, and invalid_shape where shapes do not broadcast.
std::optional<std::vector<op>> redescribe(std::span<const op> ops,
                                          std::span<const logical_tensor> inputs,
                                          const logical_tensor& result,
                                          std::span<const logical_tensor> given_inputs,
                                          std::span<const logical_tensor> given_outputs);

} // namespace maskwise::graph
