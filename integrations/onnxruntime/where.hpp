#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

inline constexpr const char* provider_name = "MaskwiseExecutionProvider";

// The kernels of Where, for any shapes and any number of threads at once; `with` outlives them.
owned<OrtKernelRegistry> make_kernel_registry(const runtime& with);

} // namespace maskwise::ort
