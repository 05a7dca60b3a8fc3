#pragma once

#include "client/timing.hpp"
#include "input/case_config.hpp"
#include "report/result.hpp"

namespace maskwise::bench {

// Runs a case of --dialect=attention on the engine: verdicts, comparison and measurement as of a
// graph. `timed` becomes what was measured, for more samples. Throws input_error for a case that
// cannot be read.
case_result run_attention_case(const case_config& config, int verbose, timed_calls& timed);

} // namespace maskwise::bench
