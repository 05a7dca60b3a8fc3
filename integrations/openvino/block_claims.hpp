#pragma once

#include "block_match.hpp"

#include "maskwise/openvino.hpp"

namespace maskwise::openvino {

// Whether Maskwise runs this block. Prints a line if MASKWISE_VERBOSE is above 0.
bool is_claimed(const block_match& match, const ov::Node& end, const accelerate_options& options);

// Prints the verbose line for a Softmax or a ScaledDotProductAttention that ends no block. Prints
// nothing for a MatMul.
void report_no_match(const ov::Node& end);

} // namespace maskwise::openvino
