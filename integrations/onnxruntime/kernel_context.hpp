#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// An input of a running node.
struct input_tensor {
    const OrtValue* value = nullptr;
    tensor_desc desc;
    const void* data = nullptr; // null for strings
};

// One call of a kernel.
class kernel_context {
public:
    kernel_context(const runtime& api, OrtKernelContext* context) : api_(api), context_(context) {}

    input_tensor input(std::size_t index) const;
    // The tensor's type is undef if the node omits the input.
    input_tensor optional_input(std::size_t index) const;
    // Lets ONNX Runtime allocate an output of this shape. Returns null if the node omits the
    // output.
    OrtValue* make_output(const dims& extents, std::size_t index = 0) const;
    void* output_data(const dims& extents, std::size_t index = 0) const;
    // A loop over the session's threads, valid during the call. Fewer threads than `threads` may
    // run the loop. The loop throws failed_call if ONNX Runtime fails.
    parallel_loop loop(int threads) const;

private:
    const runtime& api_;
    OrtKernelContext* context_;
};

// The number of logical processors: the default of maskwise.threads.
int processors();

} // namespace maskwise::ort
