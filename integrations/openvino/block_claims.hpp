#pragma once

#include "found_block.hpp"

#include "maskwise/openvino.hpp"

namespace maskwise::openvino {

// Whether Maskwise runs a block of a complete model; prints the line of MASKWISE_VERBOSE.
bool is_claimed(const found_block& found, const ov::Node& end, const accelerate_options& options);

// The line of a Softmax or an attention operator that ends no block; nothing for a MatMul.
void report_none(const ov::Node& end);

} // namespace maskwise::openvino
