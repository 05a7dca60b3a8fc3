#pragma once

#include "graph/logical_tensor.hpp"
#include "graph/op.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace maskwise::graph {

// Every compile checks the client's tensors by these functions, and completes dst.

// The index of the first tensor with the port's id. Throws argument_error with the operand's name
// if there is none.
std::size_t position_of(std::span<const logical_tensor> tensors, const logical_tensor& port,
                        const std::string& name);

// Throws argument_error if the shape is not known, shape_error if an extent is negative.
void require_known_shape(const logical_tensor& input, const std::string& name);

// The same, and argument_error if the layout is not strided. A host scalar needs no layout: the
// tensor object holds its value.
void require_readable(const logical_tensor& input, const std::string& name);

// Throws shape_error if the client gives dst another shape than the inferred one.
void require_fitting_dst(const logical_tensor& dst, const dims& inferred);

// Gives `dst` its inferred shape and its strides. A layout that the client fixed stays. If shape or
// layout was open, dst becomes dense, in the order of the first of `models` with dst's shape, as
// oneDNN follows src_0; row-major if there is none. Throws argument_error for a layout that
// Maskwise cannot write (undef, opaque).
void complete_output(logical_tensor& dst, const dims& shape,
                     std::span<const logical_tensor* const> models);

// Throws argument_error if the attribute is neither none nor numpy.
auto_broadcast broadcast_of(const op& op);

} // namespace maskwise::graph
