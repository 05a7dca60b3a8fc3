#pragma once

#include "maskwise/openvino.hpp"

#include <openvino/op/select.hpp>

#include <string>

namespace maskwise::openvino {

// Where a Select stands. The inputs and outputs of a body have other elements than the model's.
enum class place { model, body };

// Whether Maskwise runs a Select of a complete model; prints the line of MASKWISE_VERBOSE. Throws
// ov::Exception where options.force meets elements that the CPU plugin narrows.
bool is_claimed(const ov::op::v1::Select& select, const accelerate_options& options,
                place in = place::model);

// Why Maskwise cannot run a Select at all; empty where it can.
std::string reason_of_form(const ov::op::v1::Select& select);

// The operator in front of a node's output, or behind one, with which the CPU plugin would join
// what is there; null where there is none.
const ov::Node* joined_producer(const ov::Node& node);
const ov::Node* joined_reader(const ov::Node& node);
// Whether a condition of so many elements costs next to nothing, whatever computes it.
bool is_small_cond(std::size_t elements, std::size_t of_dst);

} // namespace maskwise::openvino
