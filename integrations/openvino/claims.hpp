#pragma once

#include "maskwise/openvino.hpp"

#include <openvino/op/select.hpp>

#include <cstddef>

namespace maskwise::openvino {

// Whether Maskwise runs this Select. Prints a line if MASKWISE_VERBOSE is set.
bool is_claimed(const ov::op::v1::Select& select, const accelerate_options& options);

// The producer (starting at `node` itself) or consumer that the CPU plugin would fuse a Select
// with; null if there is none. Both look through views.
const ov::Node* fused_producer(const ov::Node& node);
const ov::Node* fused_consumer(const ov::Node& node);
// Whether computing a condition of this size costs next to nothing beside the result.
bool is_small_cond(std::size_t elements, std::size_t dst_elements);

} // namespace maskwise::openvino
