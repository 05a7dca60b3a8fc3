#pragma once

#include "element_types.hpp"

#include <openvino/runtime/tensor.hpp>

namespace maskwise::openvino {

// Strides are left empty where the tensor has no gaps.
tensor_desc describe(const ov::Tensor& tensor);
// Of a condition, u8 is the plugin's boolean.
tensor_desc describe_cond(const ov::Tensor& tensor);

// Lets a condition have the boolean that the plugin has converted to u8: the same bytes.
void bypass_conversion_of_cond(ov::Node& node, std::size_t input);
// Throws ov::NodeValidationFailure where it is neither boolean nor u8.
void require_cond(const ov::Node& node, std::size_t input);

} // namespace maskwise::openvino
