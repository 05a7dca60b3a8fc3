#pragma once

#include "maskwise/openvino.hpp"

#include <openvino/op/select.hpp>

namespace maskwise::openvino {

// Whether Maskwise runs a Select of a complete model; prints the line of MASKWISE_VERBOSE. Throws
// ov::Exception where options.force meets a type that the CPU plugin narrows.
bool is_claimed(const ov::op::v1::Select& select, const accelerate_options& options);

} // namespace maskwise::openvino
