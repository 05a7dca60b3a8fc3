#pragma once

#include <openvino/core/node.hpp>

#include <memory>

namespace maskwise::openvino {

// Tells an operation that the CPU plugin computes its model in 16 bits (INFERENCE_PRECISION_HINT):
// nothing else does, since the plugin changes types only where it makes its own graph of the model.
// In these precisions a pass of the plugin marks every Range of floating point. So an operation has
// one as an input, a constant for the plugin. Where it is never marked, as in a plugin without
// that pass, the operation stays in f32.
std::shared_ptr<ov::Node> make_precision_probe();
bool is_in_16_bits(const ov::Node& probe);

} // namespace maskwise::openvino
