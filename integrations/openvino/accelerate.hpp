#pragma once

#include "maskwise/openvino.hpp"

namespace maskwise::openvino {

// Applies `accelerate` in place to these nodes, which must be in topological order.
void replace_claimed(const ov::NodeVector& nodes, const accelerate_options& options);

} // namespace maskwise::openvino
