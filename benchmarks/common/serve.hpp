#pragma once

#include "common/bench_case.hpp"

#include <functional>
#include <vector>

namespace maskwise::bench {

// Reads JSON objects from standard input, one per line, and answers each with one line of JSON on
// standard output until the input ends. Output of libraries goes to standard error. An exception
// becomes {"error": text}.
int serve(const std::function<json(const json&)>& answer);

// Uncounted calls until then: the working set comes into the cache that can hold it over several
// passes, and the system may wake a thread of oneTBB's on the caller's processor and take two of
// its ticks, 8 ms, to move it to the idle one.
inline constexpr double warm_seconds = 10e-3;

// Seconds a call, `samples` of them but not many more than fit `max_seconds`, at least one. Calls
// before them, one and as many as fit `warm` seconds, are not counted, unless calls are slow or,
// with a shorter warm-up than usual, longer than that. Short calls are repeated within a sample;
// `wait` ends a sample.
std::vector<double> take_samples(const std::function<void()>& call,
                                 const std::function<void()>& wait, int samples, double max_seconds,
                                 double warm = warm_seconds);

// Processors that this process may use.
int processor_count();

// The most memory this process had at once.
std::int64_t peak_resident_bytes();

} // namespace maskwise::bench
