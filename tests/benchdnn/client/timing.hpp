#pragma once

#include "client/execution.hpp"
#include "report/result.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace maskwise::bench {

// The parts of a measurement: calls, waiting for calls that still run, and evicting the partition's
// memory from the caches.
struct timed_calls {
    std::function<void()> run, wait, evict;
};
timed_calls calls_of(execution& work);

void drop_from_caches(std::span<const std::byte> bytes);

measurement summarize(std::vector<double> samples, std::size_t bytes);

// The second call is the first without page faults and sleeping threads. If a call is slow, these
// do not matter. Returns the milliseconds of the first.
double warm_up(const timed_calls& work);

// Runs until `samples` are taken, or, with 0, until the median is stable; never longer than
// `max_ms`. A sample is the mean of as many calls as fill 20 microseconds, so that the clock does
// not show in tiny cases. Milliseconds. Call warm_up once before.
std::vector<double> take_samples(const timed_calls& work, int samples, double max_ms,
                                 bool cold_cache);

} // namespace maskwise::bench
