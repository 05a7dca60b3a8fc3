#include "compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

namespace maskwise::bench {
namespace {

// Bound on each element's error, in tolerances, even if the L2 error is small.
constexpr double point_limit = 16.0;
// Limit of the relative L2 error, as in oneDNN's driver.
constexpr double norm_limit = 3e-3;
constexpr std::size_t points_per_miss = 1024;

std::string describe(const tensor& expected, const tensor& got, std::size_t i) {
    dims index(expected.shape.size());
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t d = index.size(); d-- > 0;) {
        index[d] = rest % expected.shape[d];
        rest /= expected.shape[d];
    }
    const auto hex = [i](const tensor& t) {
        std::string text;
        for (std::size_t b = t.width(); b-- > 0;)
            text += fmt::format("{:02x}", std::to_integer<int>(t.bytes[i * t.width() + b]));
        return text;
    };
    const double want = load_number(expected.dtype, expected.bytes.data() + i * expected.width());
    const double have = load_number(got.dtype, got.bytes.data() + i * got.width());
    return fmt::format("[{}] expected {} (0x{}), got {} (0x{})", fmt::join(index, ","), want,
                       hex(expected), have, hex(got));
}

comparison compare_bytes(const tensor& expected, const tensor& got) {
    comparison result{0, expected.count(), ""};
    const std::size_t width = expected.width();
    for (std::size_t i = 0; i < result.total; ++i) {
        if (std::memcmp(&expected.bytes[i * width], &got.bytes[i * width], width) == 0) continue;
        if (result.errors++ == 0) result.first = describe(expected, got, i);
    }
    return result;
}

double root_mean_square(const std::vector<double>& values) {
    double sum = 0.0;
    for (const double x : values)
        if (std::isfinite(x)) sum += x * x;
    return values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// The error, in tolerances. 0 if both numbers are NaN or the same infinity.
double distance(double want, double have, double scale, const tolerance& allowed) {
    if (std::isnan(want) && std::isnan(have)) return 0.0;
    if (want == have) return 0.0;
    const double limit = allowed.absolute + allowed.relative * std::max(std::fabs(want), scale);
    const double error = std::fabs(want - have);
    return std::isfinite(error) && limit > 0 ? error / limit
                                             : std::numeric_limits<double>::infinity();
}

double norm_error(const std::vector<double>& want, const std::vector<double>& have) {
    double difference = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (!std::isfinite(want[i])) continue;
        difference += (want[i] - have[i]) * (want[i] - have[i]);
        size += want[i] * want[i];
    }
    return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

double coarsest_roundoff(const graph& g) {
    double coarsest = 0.0;
    for_each_tensor(
        g, [&](const logical_tensor& t) { coarsest = std::max(coarsest, roundoff(t.dtype)); });
    if (g.fpmath_mode == "bf16" || g.fpmath_mode == "any")
        coarsest = std::max(coarsest, roundoff(data_type::bf16));
    if (g.fpmath_mode == "f16" || g.fpmath_mode == "tf32")
        coarsest = std::max(coarsest, roundoff(data_type::f16));
    return coarsest;
}

bool has_any(const graph& g, std::initializer_list<data_type> types) {
    bool has_type = false;
    for_each_tensor(g, [&](const logical_tensor& t) {
        has_type = has_type || std::find(types.begin(), types.end(), t.dtype) != types.end();
    });
    return has_type;
}

bool has_quantized(const graph& g) {
    return has_any(g, {data_type::s8, data_type::u8});
}

} // namespace

bool mixes_16_bits_and_integers(const graph& g) {
    return has_quantized(g) && has_any(g, {data_type::bf16, data_type::f16});
}

tolerance tolerance_for(const graph& g, const logical_tensor& t, bool bits_moved) {
    tolerance result;
    const bool alone = g.ops.size() == 1;
    if (!is_floating(t.dtype)) {
        const bool rounded = t.dtype == data_type::s8 || t.dtype == data_type::u8;
        result.exact = !rounded;
        result.absolute = rounded ? 1.0 : 0.0;
        result.norm_allowed = rounded && !alone;
        return result;
    }
    result.exact = bits_moved;
    if (bits_moved) return result;
    const double u = coarsest_roundoff(g);
    // The f32 tolerance covers another summation order, and approximate exp and tanh. The 16-bit
    // tolerance covers the rounding of the result and, with several operators, of a few values
    // before the result.
    const bool wide = u <= roundoff(data_type::f32);
    result.relative = u * (wide ? (alone ? 128.0 : 1024.0) : (alone ? 2.0 : 6.0));
    result.norm_allowed = !alone && (!wide || has_quantized(g));
    return result;
}

comparison compare(const tensor& expected, const tensor& got, const tolerance& allowed) {
    if (expected.count() != got.count())
        return {1, 1,
                fmt::format("shape {} instead of {}", to_text(got.shape), to_text(expected.shape))};
    if (allowed.exact && expected.dtype == got.dtype) return compare_bytes(expected, got);
    const std::vector<double> want = to_doubles(expected);
    const std::vector<double> have = to_doubles(got);
    const double scale = root_mean_square(want);
    comparison result{0, want.size(), ""};
    double furthest = 0.0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double d = distance(want[i], have[i], scale, allowed);
        furthest = std::max(furthest, d);
        if (d > 1.0 && result.errors++ == 0) result.first = describe(expected, got, i);
    }
    result.used = std::min(furthest, 1e9); // JSON has no infinity
    const bool few_misses =
        result.errors <= result.total / points_per_miss && furthest <= point_limit;
    if (result.errors > 0 && allowed.norm_allowed && few_misses &&
        norm_error(want, have) <= norm_limit)
        return {0, want.size(), "", norm_error(want, have) / norm_limit};
    return result;
}

} // namespace maskwise::bench
