#include "client/timing.hpp"

#include <algorithm>
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

} // namespace

bool is_stable(const std::vector<double>& samples) {
    if (samples.size() < 2 * stable_window) return false;
    const double before = median({samples.begin(), samples.end() - stable_window});
    return std::fabs(median(samples) - before) <= stable_change * before;
}

void drop_from_caches(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
    for (std::size_t i = 0; i < bytes.size(); i += 64) _mm_clflush(bytes.data() + i);
    _mm_mfence();
#else
    // Reading more than any cache holds pushes the buffers out.
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

} // namespace maskwise::bench
