#include "client/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace maskwise::bench {
namespace {

constexpr std::size_t stable_window = 8;
constexpr double stable_change = 0.01;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

bool is_stable(const std::vector<double>& samples) {
    if (samples.size() < 2 * stable_window) return false;
    const double before = median({samples.begin(), samples.end() - stable_window});
    return std::fabs(median(samples) - before) <= stable_change * before;
}

double time_calls(const timed_calls& work, int calls) {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    for (int i = 0; i < calls; ++i) work.run();
    work.wait();
    return std::chrono::duration<double, std::milli>(clock::now() - start).count() / calls;
}

} // namespace

timed_calls calls_of(execution& work) {
    return {[&work] { work.run(); }, [&work] { work.wait(); }, [&work] { work.evict(); }};
}

void drop_from_caches(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
    for (std::size_t i = 0; i < bytes.size(); i += 64) _mm_clflush(bytes.data() + i);
    _mm_mfence();
#else
    // Writing 256 MiB evicts the buffers from caches of up to that size.
    static std::vector<unsigned char> sweep(std::size_t{256} << 20);
    for (std::size_t i = 0; i < sweep.size(); i += 64) ++sweep[i];
#endif
}

measurement summarize(std::vector<double> samples, std::size_t bytes) {
    measurement m;
    m.bytes = bytes;
    m.samples = static_cast<int>(samples.size());
    if (samples.empty()) return m;
    m.min_ms = *std::min_element(samples.begin(), samples.end());
    m.max_ms = *std::max_element(samples.begin(), samples.end());
    m.mean_ms =
        std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
    m.median_ms = median(std::move(samples));
    return m;
}

double warm_up(const timed_calls& work) {
    constexpr double slow_call_ms = 100;
    const double first_ms = time_calls(work, 1);
    if (first_ms < slow_call_ms) time_calls(work, 1);
    return first_ms;
}

std::vector<double> take_samples(const timed_calls& work, int samples, double max_ms,
                                 bool cold_cache) {
    constexpr double sample_ms = 0.02;
    std::vector<double> taken;
    double spent = 0;
    int calls = 1;
    while (taken.empty() || spent < max_ms) {
        if (cold_cache) work.evict();
        const double ms = time_calls(work, calls);
        spent += ms * calls;
        // With `cold_cache` a sample is one call: a second call would find cached data.
        if (calls == 1 && ms < sample_ms / 2 && !cold_cache) {
            calls = static_cast<int>(sample_ms / std::max(ms, 1e-6)) + 1;
            continue; // the first call only determines how many calls make a sample
        }
        taken.push_back(ms);
        if (samples > 0 && taken.size() >= static_cast<std::size_t>(samples)) break;
        if (samples == 0 && is_stable(taken)) break;
    }
    return taken;
}

} // namespace maskwise::bench
