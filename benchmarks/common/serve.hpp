#pragma once

#include "common/bench_case.hpp"

#include <functional>
#include <vector>

namespace maskwise::bench {

// Reads JSON objects from standard input, one per line, and answers each with one line of JSON on
// standard output until the input ends. Output of libraries goes to standard error. An exception
// becomes {"error": text}.
int serve(const std::function<json(const json&)>& answer);

// Calls in the first 10 ms are not counted. They fill the cache that can hold the working set.
// Also, the system may wake a oneTBB thread on the caller's processor and take two ticks, 8 ms, to
// move the thread to the idle processor.
inline constexpr double warm_seconds = 10e-3;

// Returns seconds per call: at most `samples` samples, at least one, and not many more than fit
// `max_seconds`. First, one call and as many as fit `warm` seconds run as a warm-up. It is not
// counted, unless calls are slow or, with a shorter warm-up than usual, longer than the warm-up.
// Short calls are repeated within a sample; `wait` ends a sample.
std::vector<double> take_samples(const std::function<void()>& call,
                                 const std::function<void()>& wait, int samples, double max_seconds,
                                 double warm = warm_seconds);

// Processors that this process may use.
int processor_count();

// The largest resident memory of this process so far.
std::int64_t peak_resident_bytes();

} // namespace maskwise::bench
