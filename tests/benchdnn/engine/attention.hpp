#pragma once

// A case of --dialect=attention, by the options of graphs: tensors by id (0 query, 1 key, 2 value,
// 3 cond, 4 bias, 5 dst), the attributes of op 0, and what cond holds.

#include "client/timing.hpp"
#include "input/case_config.hpp"
#include "report/result.hpp"

namespace maskwise::bench {

// Runs a case of --dialect=attention on the engine: verdicts, comparison and measurement as of a
// graph. `timed` becomes what was measured, for more samples. Throws input_error for a case that
// cannot be read.
case_result run_attention_case(const case_config& config, int verbose, timed_calls& timed);

} // namespace maskwise::bench
