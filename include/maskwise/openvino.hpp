// Maskwise: attention, Softmax of masked scores and Select-1 of OpenVINO models by Maskwise.
//
//   auto compiled = core.compile_model(maskwise::openvino::accelerate(model), "CPU");
//
// Compile with OpenVINO 2026.0 or newer, and link with it and with libmaskwise_openvino.so.
#pragma once

#include <openvino/core/model.hpp>

#include <memory>

namespace maskwise::openvino {
inline namespace v1 {

struct accelerate_options {
    bool force = false; // take all that Maskwise can run, not only where it is faster
    // In attention and Softmax by Maskwise, a row without an unmasked key is zeros, as in PyTorch.
    // OpenVINO makes NaN of it. Takes every attention and Softmax that Maskwise can run.
    bool zero_masked_rows = false;
    // INFERENCE_PRECISION_HINT of compile_model, which the operations of a compiled model are not
    // told. With bf16, attention of f32 is computed in bf16. With dynamic it is computed in the
    // types of the model, and on CPUs with AVX512_BF16, where the plugin's own choice is bf16, only
    // what is causal is taken of f32.
    ov::element::Type_t precision = ov::element::Type_t::dynamic;
};

// A copy of the model in which Maskwise runs attention, Softmax of masked scores and Select, also
// in the bodies of If, Loop and TensorIterator. The copy has operations of Maskwise's, and shares
// its constants with `model`, which is not changed. Friendly names, names of tensors and runtime
// info are kept. By default it takes what is faster than the CPU plugin's own; MASKWISE_VERBOSE=1
// prints a line for each.
__attribute__((visibility("default"))) std::shared_ptr<ov::Model>
accelerate(const std::shared_ptr<const ov::Model>& model, accelerate_options options = {});

} // namespace v1
} // namespace maskwise::openvino
