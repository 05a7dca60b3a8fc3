#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// An input of a node that runs.
struct input_tensor {
    const abi::value* value;
    tensor_desc desc;
    const void* data; // not for strings
};

input_tensor read_input(const runtime& with, const abi::kernel_context* context, std::size_t index);

// The node's output of this shape: ONNX Runtime finds its memory.
abi::value* make_output(const runtime& with, abi::kernel_context* context, const dims& extents);

} // namespace maskwise::ort
