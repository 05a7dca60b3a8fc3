#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// The kernels of operators that are attention by themselves, for any shapes and any number of
// threads at once; `with` outlives them.
void add_attention_kernels(const runtime& with, OrtKernelRegistry* to);

} // namespace maskwise::ort
