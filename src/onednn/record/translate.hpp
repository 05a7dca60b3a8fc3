#pragma once

#include "graph/op.hpp"
#include "onednn/record/graph_record.hpp"

#include <span>
#include <vector>

namespace maskwise::onednn {

// The only place where oneDNN's numbers become Maskwise's words and back. Unknown data types become
// data_type::undef and unknown layouts layout_kind::undef: both are refused later with a reason.
// Throws argument_error for a rank outside -1..12.
graph::logical_tensor from_abi(const abi::logical_tensor& tensor);
std::vector<graph::logical_tensor> from_abi(std::span<const abi::logical_tensor* const> tensors);

// Whether rank and every extent are given.
bool has_known_shape(const abi::logical_tensor& tensor);

// `original` with shape, strides and layout replaced by those of a compiled output.
abi::logical_tensor to_abi(const graph::logical_tensor& tensor,
                           const abi::logical_tensor& original);

// `original` with the shape of `tensor`, in any layout.
abi::logical_tensor with_shape_of(const graph::logical_tensor& tensor,
                                  const abi::logical_tensor& original);

// A recorded operator in Maskwise's words; kinds that the matcher does not tell apart are `other`.
// A rank outside 0..12 counts as unknown. Throws std::bad_alloc.
graph::op translate(const op_record& record);

} // namespace maskwise::onednn
