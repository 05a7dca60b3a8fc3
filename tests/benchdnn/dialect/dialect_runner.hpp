#pragma once

#include "input/case_config.hpp"
#include "report/result.hpp"

namespace maskwise::bench {

// Runs a Select by a dialect's definition through libmaskwise's C++ API: shape, every bit, bytes
// around dst and time, or the refusal that --expect names. Throws input_error when the words of the
// command line cannot be read; every other outcome is a verdict.
case_result run_dialect(const case_config& config);

} // namespace maskwise::bench
