#pragma once

#include "tensors.hpp"

namespace maskwise::ort {

// Where of strings, through ONNX Runtime's functions for them: what a string is in its memory is
// not said. One thread.
void run_where_of_strings(const runtime& with, abi::kernel_context* context, dialect form,
                          const input_tensor& cond, const input_tensor& x, const input_tensor& y);

} // namespace maskwise::ort
