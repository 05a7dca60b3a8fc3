#pragma once

#include "maskwise/openvino.hpp"

namespace maskwise::openvino {

// What `accelerate` does, to the nodes of a graph in topological order.
void replace_claimed(const ov::NodeVector& nodes, const accelerate_options& options);

} // namespace maskwise::openvino
