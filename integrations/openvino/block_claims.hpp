#pragma once

#include "block_match.hpp"

#include "maskwise/openvino.hpp"

namespace maskwise::openvino {

// Whether Maskwise runs this block. Prints a line if MASKWISE_VERBOSE is set.
bool is_claimed(const block_match& match, const ov::Node& end, const accelerate_options& options);

// Prints the verbose line for a Softmax or an attention operator that ends no block. A MatMul gets
// none.
void report_no_match(const ov::Node& end);

} // namespace maskwise::openvino
