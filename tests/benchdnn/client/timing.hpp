#pragma once

#include "client/execution.hpp"
#include "report/result.hpp"

#include <vector>

namespace maskwise::bench {

// Runs the execution until `samples` are taken, or, with 0, until the median is stable; never
// longer than `max_ms`. A sample is the mean of as many calls as fill 20 microseconds, so that
// the clock does not show in tiny cases. Milliseconds. Call warm_up once before.
std::vector<double> take_samples(execution& e, int samples, double max_ms, bool cold_cache);

void warm_up(execution& e);

measurement summarize(std::vector<double> samples, std::size_t bytes);

} // namespace maskwise::bench
