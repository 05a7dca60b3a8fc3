#pragma once

#include "graph/logical_tensor.hpp"
#include "onednn/abi.hpp"

#include <span>
#include <vector>

namespace maskwise::onednn {

// The only place where oneDNN's numbers become Maskwise's words and back. Unknown data types become
// data_type::undef and unknown layouts layout_kind::undef: both are refused later with a reason.
// Throws invalid_argument for a rank outside -1..12.
graph::logical_tensor from_abi(const abi::logical_tensor& tensor);
data_type type_from_abi(int type);

// Whether rank and every extent are given.
bool has_known_shape(const abi::logical_tensor& tensor);
std::vector<graph::logical_tensor> from_abi(std::span<const abi::logical_tensor* const> tensors);

// `original` with shape, strides and layout replaced by those of a compiled output.
abi::logical_tensor to_abi(const graph::logical_tensor& tensor,
                           const abi::logical_tensor& original);

} // namespace maskwise::onednn
