#pragma once

#include "graph/logical_tensor.hpp"
#include "graph/op.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace maskwise::graph {

// The checks of the client's tensors that every compile makes, and the description of dst.

// Where the first tensor with the port's id stands in the list. Throws argument_error naming the
// operand where there is none.
std::size_t position_of(std::span<const logical_tensor> tensors, const logical_tensor& port,
                        const std::string& name);

// Throws argument_error or shape_error where the shape is not known or an extent is negative.
void require_known_shape(const logical_tensor& input, const std::string& name);

// The same, and argument_error where the layout is not strided. A host scalar has no layout: its
// value travels with the tensor.
void require_readable(const logical_tensor& input, const std::string& name);

// Throws shape_error where the client gives dst another shape than the inferred one.
void require_fitting_dst(const logical_tensor& dst, const dims& inferred);

// Gives `dst` its inferred shape and its strides. A layout that the client fixed stays; where shape
// or layout was open, dst becomes dense: in the order of the first of `models` that has dst's shape
// (as oneDNN follows src_0), row-major when none has. Throws argument_error for a layout that
// Maskwise cannot write (undef, opaque).
void complete_output(logical_tensor& dst, const dims& shape,
                     std::span<const logical_tensor* const> models);

// Throws argument_error where the attribute is neither none nor numpy.
auto_broadcast broadcast_of(const op& from);

} // namespace maskwise::graph
