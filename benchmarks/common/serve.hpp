#pragma once

#include "common/bench_case.hpp"

#include <functional>
#include <vector>

namespace maskwise::bench {

// Reads JSON objects from standard input, one per line, and answers each with one line of JSON on
// standard output until the input ends. Output of libraries goes to standard error. An exception
// becomes {"error": text}.
int serve(const std::function<json(const json&)>& answer);

// The warm-up fills the caches and gives Linux time to spread oneTBB's threads. Linux may wake a
// thread on the caller's processor, and moves the thread away only after two ticks (8 ms).
inline constexpr double warm_seconds = 10e-3;

// Returns 1 to `samples` samples, in seconds per call. The warm-up takes at least one call and
// `warm` seconds. No sample begins later than `max_seconds` after the warm-up. A first call that
// takes longer than 0.1 s is the only sample. `warm` replaces 0.1 s if it is below warm_seconds. A
// sample repeats a short call until about 100 us have passed, and ends with `wait`.
std::vector<double> take_samples(const std::function<void()>& call,
                                 const std::function<void()>& wait, int samples, double max_seconds,
                                 double warm = warm_seconds);

// Number of processors that this process may use.
int processor_count();

// Largest resident memory of this process so far, in bytes.
std::int64_t peak_resident_bytes();

} // namespace maskwise::bench
