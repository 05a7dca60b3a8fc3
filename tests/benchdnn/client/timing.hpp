#pragma once

#include "report/result.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

// What is timed has run(), wait(), which returns when what runs is done, and evict(), which drops
// its buffers from the caches.
namespace maskwise::bench {

// The last few samples did not move the median.
bool is_stable(const std::vector<double>& samples);

void drop_from_caches(std::span<const std::byte> bytes);

measurement summarize(std::vector<double> samples, std::size_t bytes);

template <class Work>
double time_calls(Work& work, int calls) {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    for (int i = 0; i < calls; ++i) work.run();
    work.wait();
    return std::chrono::duration<double, std::milli>(clock::now() - start).count() / calls;
}

// The second call is the first one without page faults and sleeping threads; where a call is slow
// anyway, they do not show.
template <class Work>
void warm_up(Work& work) {
    constexpr double slow_call_ms = 100;
    if (time_calls(work, 1) < slow_call_ms) time_calls(work, 1);
}

// Runs until `samples` are taken, or, with 0, until the median is stable; never longer than
// `max_ms`. A sample is the mean of as many calls as fill 20 microseconds, so that the clock does
// not show in tiny cases. Milliseconds. Call warm_up once before.
template <class Work>
std::vector<double> take_samples(Work& work, int samples, double max_ms, bool cold_cache) {
    constexpr double sample_ms = 0.02;
    std::vector<double> taken;
    double spent = 0;
    int calls = 1;
    while (taken.empty() || spent < max_ms) {
        if (cold_cache) work.evict();
        const double ms = time_calls(work, calls);
        spent += ms * calls;
        // A cold call is one call: the second one would find the data in the caches.
        if (calls == 1 && ms < sample_ms / 2 && !cold_cache) {
            calls = static_cast<int>(sample_ms / std::max(ms, 1e-6)) + 1;
            continue; // the first call only says how many make a sample
        }
        taken.push_back(ms);
        if (samples > 0 && taken.size() >= static_cast<std::size_t>(samples)) break;
        if (samples == 0 && is_stable(taken)) break;
    }
    return taken;
}

} // namespace maskwise::bench
