#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// The session's threads, as long as the node runs. Throws failed_call where they are run.
parallel_loop loop_of(const runtime& with, const abi::kernel_context* context);

} // namespace maskwise::ort
