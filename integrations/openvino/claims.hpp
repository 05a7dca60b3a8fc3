#pragma once

#include "maskwise/openvino.hpp"

#include <openvino/op/select.hpp>

namespace maskwise::openvino {

// Whose inputs and outputs a Select is among: a body's are no longer what the model has.
enum class place { model, body };

// Whether Maskwise runs a Select of a complete model; prints the line of MASKWISE_VERBOSE. Throws
// ov::Exception where options.force meets elements that the CPU plugin narrows.
bool is_claimed(const ov::op::v1::Select& select, const accelerate_options& options,
                place in = place::model);

} // namespace maskwise::openvino
