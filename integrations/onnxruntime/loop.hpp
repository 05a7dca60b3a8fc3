#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// Of the machine, which a session has at most if nobody says another number.
int processors();

// The session's threads, as long as the node runs: so many, or fewer, of which one then takes
// several parts. Throws failed_call where they are run.
parallel_loop loop_of(const runtime& with, const abi::kernel_context* context, int threads);

} // namespace maskwise::ort
