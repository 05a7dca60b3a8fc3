#pragma once

#include "maskwise/openvino.hpp"

#include <openvino/op/select.hpp>

#include <cstddef>

namespace maskwise::openvino {

// Whether Maskwise runs this Select. Prints a line if MASKWISE_VERBOSE is above 0.
bool is_claimed(const ov::op::v1::Select& select, const accelerate_options& options);

// Return the node with which the CPU plugin would fuse a Select or a Softmax, or null.
// fused_producer checks `node`, the producer of an input; fused_consumer checks the consumers of
// `node`, the Select or Softmax. Both look through reshapes and broadcasts.
const ov::Node* fused_producer(const ov::Node& node);
const ov::Node* fused_consumer(const ov::Node& node);
// Whether a condition of `elements` costs next to nothing beside a result of `dst_elements`.
bool is_small_cond(std::size_t elements, std::size_t dst_elements);

} // namespace maskwise::openvino
