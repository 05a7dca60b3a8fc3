#pragma once

#include "maskwise/openvino.hpp"

#include <openvino/op/select.hpp>

#include <cstddef>

namespace maskwise::openvino {

// Whether Maskwise runs a Select of a complete model; prints the line of MASKWISE_VERBOSE.
bool is_claimed(const ov::op::v1::Select& select, const accelerate_options& options);

// The operator in front of a node's output, or behind one, with which the CPU plugin would join
// what is there; null where there is none.
const ov::Node* joined_producer(const ov::Node& node);
const ov::Node* joined_reader(const ov::Node& node);
// Whether a condition of so many elements costs next to nothing, whatever computes it.
bool is_small_cond(std::size_t elements, std::size_t of_dst);

} // namespace maskwise::openvino
