#include "driver/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace maskwise::bench::driver {
namespace {

constexpr double f32_epsilon = std::numeric_limits<float>::epsilon();
constexpr double tiny = 1e-5; // up to this magnitude, the absolute error counts
constexpr double norm_limit = 3e-3;
constexpr std::size_t points_per_miss = 1024;

const std::set<std::string> eltwise{"Abs",     "Clamp",       "Dropout",   "Elu",       "Exp",
                                    "GELU",    "HardSigmoid", "HardSwish", "LeakyReLU", "Log",
                                    "Mish",    "Reciprocal",  "Pow",       "ReLU",      "Round",
                                    "Sigmoid", "SoftPlus",    "Sqrt",      "Tanh",      "Square"};
const std::set<std::string> eltwise_less_precise{"Elu", "Log", "Mish", "Tanh"};
const std::set<std::string> eltwise_to_infinity{"Exp", "Log", "Pow", "Sqrt", "Square"};
const std::set<std::string> binary{"Add",      "BiasAdd",          "Divide",   "GreaterEqual",
                                   "Maximum",  "Minimum",          "Multiply", "Select",
                                   "Subtract", "SquaredDifference"};

double epsilon(data_type type) {
    return 2 * roundoff(type);
}

double relative_of(const op& o, std::size_t index, data_type type) {
    const bool wide = type == data_type::f32;
    if (o.kind == "SoftMax" && index == 1) return 4e-5; // the statistics are logarithms
    if (o.kind == "SoftMax") return wide ? 10 * f32_epsilon : 0.0;
    if (o.kind == "SoftMaxBackward") return wide ? 40 * f32_epsilon : 0.0;
    if (eltwise.count(o.kind) > 0) {
        if (!wide) return epsilon(type);
        const bool by_tanh = o.attr<std::string>("mode", "") == "gelu_tanh";
        return by_tanh || eltwise_less_precise.count(o.kind) > 0 ? 4e-5 : 4e-6;
    }
    if (binary.count(o.kind) > 0 || o.kind.starts_with("Reduce")) return epsilon(type);
    return 0.0; // MatMuls, casts and moves must be equal
}

double rounded(data_type type, double value) {
    std::byte bytes[8];
    store_number(type, value, bytes);
    return load_number(type, bytes);
}

// A number half-way between two integers may be rounded to either integer.
bool is_other_rounding(double exact, double want, double have) {
    const double low = std::floor(exact);
    const double high = std::ceil(exact);
    return std::fabs(low + 0.5 - exact) < 9e-6 &&
           ((want == low && have == high) || (want == high && have == low));
}

bool is_same_extreme(double want, double have) {
    return (std::isnan(want) && std::isnan(have)) || (std::isinf(want) && want == have);
}

bool within_eltwise(double want, double difference, double relative, data_type type) {
    const double unit = epsilon(type);
    return difference <= std::max(unit, 2e-5) || relative <= std::max(unit, 8e-6) ||
           (std::fabs(want) > 1e5 && relative <= std::max(unit, 5e-6));
}

bool agrees(double exact, double have, data_type type, const rule& r) {
    if (exact == have) return true;
    const double want = rounded(type, exact);
    const double difference = std::fabs(want - have);
    const double size = std::fabs(want);
    const double relative = difference / (size > std::numeric_limits<float>::min() ? size : 1.0);
    if (size <= tiny && difference < f32_epsilon) return true;
    if ((size > tiny ? relative : difference) <= r.relative) return true;
    if (r.nan_allowed && is_same_extreme(want, have)) return true;
    if (difference < r.absolute) return true;
    if (r.has_eltwise && within_eltwise(want, difference, relative, type)) return true;
    return !is_floating(type) && (std::isnan(exact) || is_other_rounding(exact, want, have));
}

// Returns the relative error in the Euclidean norm; NaN if a result is NaN where the reference is
// finite.
double norm_error(const std::vector<double>& reference, const std::vector<double>& got,
                  data_type type) {
    double difference = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double want = rounded(type, reference[i]);
        if (!std::isfinite(want)) continue;
        difference += (want - got[i]) * (want - got[i]);
        size += want * want;
    }
    if (size == 0) return difference == 0 ? 0.0 : std::numeric_limits<double>::infinity();
    return std::sqrt(difference / size);
}

} // namespace

rule rule_for(const graph& part, const op& o, std::size_t index) {
    const data_type type = o.outputs.at(index).dtype;
    rule r;
    r.relative = relative_of(o, index, type);
    if (o.kind == "SoftMax") r.absolute = f32_epsilon;
    if (o.kind == "Divide") r.absolute = epsilon(type);
    r.nan_allowed = type == data_type::f16;
    for (const op& member : part.ops) {
        r.has_eltwise = r.has_eltwise || eltwise.count(member.kind) > 0;
        r.nan_allowed = r.nan_allowed || eltwise_to_infinity.count(member.kind) > 0;
        if (member.id == o.id) break; // ops that run later do not affect this result
    }
    return r;
}

comparison compare_as_driver(const tensor& reference, const tensor& got, const rule& r) {
    if (reference.count() != got.count())
        return {
            1, 1,
            fmt::format("shape {} instead of {}", to_text(got.shape), to_text(reference.shape))};
    const std::vector<double> want = to_doubles(reference);
    const std::vector<double> have = to_doubles(got);
    comparison result{0, have.size(), ""};
    for (std::size_t i = 0; i < have.size(); ++i)
        if (!agrees(want[i], have[i], got.dtype, r) && result.errors++ == 0)
            result.first = fmt::format("element {} expected {}, got {}", i,
                                       rounded(got.dtype, want[i]), have[i]);
    if (result.errors == 0) return result;
    const std::size_t allowed = result.total / points_per_miss;
    result.used = norm_error(want, have, got.dtype) / norm_limit;
    if (result.errors <= allowed && result.used <= 1.0) return {0, result.total, "", result.used};
    result.first +=
        fmt::format("; {} of {} elements differ. {} may differ if the relative L2 error is at most "
                    "{}; this error is {:.2g}",
                    result.errors, result.total, allowed, norm_limit, result.used * norm_limit);
    return result;
}

} // namespace maskwise::bench::driver
