#pragma once

#include "graph/logical_tensor.hpp"
#include "graph/op.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace maskwise::graph {

// What every compile asks of the client's tensors.

// Where the first tensor of that id stands in the list.
std::optional<std::size_t> find_position(std::span<const logical_tensor> tensors, std::size_t id);

// The same; throws invalid_argument naming the operand where there is none.
std::size_t position_of(std::span<const logical_tensor> tensors, const logical_tensor& port,
                        const std::string& name);

// Throws invalid_argument or invalid_shape where the shape is not known or an extent is negative.
void require_known_shape(const logical_tensor& input, const std::string& name);

// The same, and invalid_argument where the layout is not strided. A host scalar has no layout: its
// value travels with the tensor.
void require_readable(const logical_tensor& input, const std::string& name);

// Throws invalid_shape where what the client says of dst's shape is not what was inferred.
void require_fitting_dst(const logical_tensor& dst, const dims& inferred);

// Throws invalid_argument where the attribute is neither none nor numpy.
auto_broadcast broadcast_of(const op& from);

} // namespace maskwise::graph
