#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// The kernels of Where, for any shapes and any number of threads at once; `with` outlives them.
void add_where_kernels(const runtime& with, OrtKernelRegistry* to);

} // namespace maskwise::ort
