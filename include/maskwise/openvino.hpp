// Maskwise: attention and Select-1 of OpenVINO models by Maskwise.
//
//   ov::pass::Manager passes;
//   passes.register_pass<maskwise::openvino::accelerate_select>();
//   passes.run_passes(model); // then core.compile_model(model, "CPU")
//
// Compile with OpenVINO 2026.0 or newer, and link with it and with libmaskwise_openvino.so.
#pragma once

#include <openvino/pass/pass.hpp>

#include <memory>

namespace maskwise::openvino {
inline namespace v1 {

struct accelerate_options {
    bool force = false;           // take all, not only where Maskwise is faster
    bool allow_narrowing = false; // where force meets elements that the CPU plugin narrows
};

// Lets the CPU plugin run attention, SoftMax of masked scores and Select nodes by Maskwise; also in
// the bodies of If, Loop and TensorIterator. The nodes stay OpenVINO's own: only the clone that the
// plugin compiles has Maskwise's. Friendly names, names of tensors, runtime info and readers are
// kept. By default it takes what is faster than the CPU plugin's own; MASKWISE_VERBOSE=1 prints a
// line for each. Throws ov::Exception, and changes nothing, where force
// meets elements that the plugin narrows, i64, u64 or f64, and allow_narrowing is not set.
class __attribute__((visibility("default"))) accelerate_select : public ov::pass::ModelPass {
public:
    OPENVINO_MODEL_PASS_RTTI("maskwise::accelerate_select");
    explicit accelerate_select(accelerate_options options = {});
    // Whether a node was taken.
    bool run_on_model(const std::shared_ptr<ov::Model>& model) override;

private:
    accelerate_options options_;
};

} // namespace v1
} // namespace maskwise::openvino
