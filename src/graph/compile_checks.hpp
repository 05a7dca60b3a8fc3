#pragma once

#include "graph/logical_tensor.hpp"
#include "graph/op.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace maskwise::graph {

// Every compile checks the client's tensors and completes dst with these functions.

// Returns the index of the first tensor with the port's id. Throws argument_error with the
// operand's name if no tensor has that id.
std::size_t position_of(std::span<const logical_tensor> tensors, const logical_tensor& port,
                        const std::string& name);

// Throws argument_error if the shape is not known, shape_error if an extent is negative.
void require_known_shape(const logical_tensor& input, const std::string& name);

// Throws as require_known_shape does, and argument_error if the layout is not strided. A host
// scalar needs no layout, because the tensor object holds its value.
void require_readable(const logical_tensor& input, const std::string& name);

// Throws shape_error if dst has a rank or a known extent that differs from `inferred`.
void require_fitting_dst(const logical_tensor& dst, const dims& inferred);

// Sets the shape of `dst`, and its strides unless the client fixed them. With layout `any`, dst
// becomes dense in the dimension order of the first tensor of `models` with dst's shape. If there
// is no such model, or if layout is `strided` and the shape is unknown, dst becomes dense and
// row-major. Throws argument_error for a layout that Maskwise cannot write (undef, opaque).
void complete_output(logical_tensor& dst, const dims& shape,
                     std::span<const logical_tensor* const> models);

// Throws argument_error if the attribute is neither none nor numpy.
auto_broadcast broadcast_of(const op& op);

} // namespace maskwise::graph
