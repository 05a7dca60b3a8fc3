#pragma once

#include "client/execution.hpp"
#include "report/result.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace maskwise::bench {

// The steps of a measurement: make one call, wait for all calls, drop the buffers from the caches.
struct timed_calls {
    std::function<void()> run, wait, evict;
};
timed_calls calls_of(execution& work);

void drop_from_caches(std::span<const std::byte> bytes);

measurement summarize(std::vector<double> samples, std::size_t bytes);

// Makes one call, and a second if the first took less than 100 ms, because page faults and sleeping
// threads slow the first call. Returns the first call's milliseconds.
double warm_up(const timed_calls& work);

// Takes `samples` samples. If `samples` is 0, stops when the median is stable. Always stops after
// `max_ms` of calls, but not before one sample. A sample is the time of one call in milliseconds.
// If a call takes less than 10 microseconds and `cold_cache` is false, a sample is the mean of
// calls that together take about 20 microseconds. Call warm_up first.
std::vector<double> take_samples(const timed_calls& work, int samples, double max_ms,
                                 bool cold_cache);

} // namespace maskwise::bench
