// Maskwise runs attention, Softmax of masked scores and Select-1 of OpenVINO models.
//
//   auto compiled = core.compile_model(maskwise::openvino::accelerate(model), "CPU");
//
// Compile with OpenVINO 2026.0 or newer, and link with OpenVINO and libmaskwise_openvino.so.
#pragma once

#include <openvino/core/model.hpp>

#include <memory>

namespace maskwise::openvino {
inline namespace v1 {

struct accelerate_options {
    bool force = false; // replace every node that Maskwise can run, even if Maskwise is slower
    // A row whose scores are all -infinity becomes zeros, as in PyTorch; OpenVINO outputs NaN.
    // Implies `force` for attention and Softmax.
    bool zero_masked_rows = false;
    // compile_model's INFERENCE_PRECISION_HINT, which Maskwise's operations cannot read. With bf16,
    // f32 attention is computed in bf16. With dynamic, attention is computed in the model's types.
    // But with dynamic on CPUs with AVX512_BF16, only causal f32 attention is replaced: there, the
    // CPU plugin may compute f32 models in bf16, which is faster.
    ov::element::Type_t precision = ov::element::Type_t::dynamic;
};

// Returns a copy of the model with Maskwise's operations for attention, Softmax of masked scores
// and Select, also in the bodies of If, Loop and TensorIterator. The copy shares the constants of
// `model`, which is unchanged. Friendly names, tensor names and runtime info are copied. By
// default, a node is replaced only if Maskwise is expected to be faster than the CPU plugin.
// MASKWISE_VERBOSE=1 prints a line per candidate.
__attribute__((visibility("default"))) std::shared_ptr<ov::Model>
accelerate(const std::shared_ptr<const ov::Model>& model, accelerate_options options = {});

} // namespace v1
} // namespace maskwise::openvino
