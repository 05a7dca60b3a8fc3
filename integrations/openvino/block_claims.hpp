#pragma once

#include "found_block.hpp"

#include "maskwise/openvino.hpp"

#include <string>

namespace maskwise::openvino {

// Whether Maskwise runs a block of a complete model; prints the line of MASKWISE_VERBOSE.
bool is_claimed(const found_block& found, const ov::Node& end, const accelerate_options& options);

// Why Maskwise cannot run a block at all; empty where it can. With a cache in states OpenVINO has
// another causal boundary.
std::string reason_of_form(const found_block& found, const ov::Node& end);

// The line of a Softmax or an attention operator that ends no block; nothing for a MatMul.
void report_none(const ov::Node& end);

} // namespace maskwise::openvino
