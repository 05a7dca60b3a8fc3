#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// The kernel of one Where node, for any shapes and any number of threads at once; released through
// itself. Throws failed_call and bad_alloc. `with` outlives it.
abi::kernel_impl* make_where_kernel(const runtime& with, const abi::kernel_info* info);

} // namespace maskwise::ort
