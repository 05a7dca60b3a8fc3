#include "jit/expression_oracle.hpp"

#include "support/elements.hpp"
#include "support/operations.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <vector>

namespace maskwise::test {
namespace {

using jit::node;
using jit::node_kind;

allowed anything() {
    allowed value;
    value.is_anything = true;
    value.is_exact = false;
    return value;
}

allowed truth(std::optional<bool> value) {
    allowed result;
    result.truth = value;
    return result;
}

double round_to(double value, data_type type) {
    return round_to(value, element_of(type));
}

double quantized(double x, const node& what) {
    const bool is_signed = what.type == data_type::i8;
    const double quotient = round_to(x / static_cast<double>(what.alpha), element::f32);
    const double scaled = round_to(quotient + static_cast<double>(what.beta), element::f32);
    return compute(operation::clamp, std::nearbyint(scaled), 0, is_signed ? -128 : 0,
                   is_signed ? 127 : 255);
}

operation operation_of(node_kind kind) {
    static const auto known = [] {
        std::map<node_kind, operation> made;
#define MASKWISE_NODE(name, arguments)                                                             \
    if (const auto found = find_operation(#name)) made[node_kind::name] = *found;
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
        return made;
    }();
    return known.at(kind);
}

// One node on exact numbers.
double compute(const node& what, double a, double b) {
    const double alpha = static_cast<double>(what.alpha), beta = static_cast<double>(what.beta);
    if (what.kind == node_kind::constant) return alpha;
    if (what.kind == node_kind::type_cast) return round_to(a, what.type);
    if (what.kind == node_kind::quantize) return quantized(a, what);
    return round_to(compute(operation_of(what.kind), a, b, alpha, beta), element::f32);
}

// The corners of the arguments' ranges and the points inside where a node turns around.
std::vector<double> probes(const allowed& value) {
    std::vector<double> found{value.least, value.most};
    if (value.least < 0 && value.most > 0) found.insert(found.end(), {0.0, -0.0});
    return found;
}

bool may_have_a_pole(const node& what, const allowed& b) {
    return what.kind == node_kind::divide && !b.is_exact && b.least <= 0 && b.most >= 0;
}

// An approximation is off by some units, but never on the other side of 0.
allowed widened(allowed value, int ulps) {
    if (ulps == 0 || std::isnan(value.least)) return value;
    const bool is_positive = value.least >= 0, is_negative = value.most <= 0;
    value.least = step_f32(value.least, -ulps);
    value.most = step_f32(value.most, ulps);
    if (is_positive) value.least = std::max(value.least, 0.0);
    if (is_negative) value.most = std::min(value.most, 0.0);
    value.is_exact = false;
    return value;
}

// Every node is monotone in each argument between the probes, and so is rounding.
allowed compute_range(const node& what, const allowed& a, const allowed& b) {
    if (a.is_anything || b.is_anything || may_have_a_pole(what, b)) return anything();
    allowed result;
    result.is_exact = a.is_exact && b.is_exact;
    if (result.is_exact) {
        result.least = result.most = compute(what, a.least, b.least);
    } else {
        result.least = std::numeric_limits<double>::infinity();
        result.most = -result.least;
        for (const double x : probes(a))
            for (const double y : probes(b)) {
                const double value = compute(what, x, y);
                if (std::isnan(value)) return anything();
                result.least = std::min(result.least, value);
                result.most = std::max(result.most, value);
            }
    }
    return widened(result, tolerance_ulps(what.kind));
}

allowed compare(const allowed& a, const allowed& b) {
    if (a.is_anything || b.is_anything) return truth({});
    if (std::isnan(a.least) || std::isnan(b.least)) return truth(false);
    if (a.least >= b.most) return truth(true);
    if (a.most < b.least) return truth(false);
    return truth({});
}

allowed input(const node& what, std::uint32_t bits) {
    if (what.type == data_type::boolean) return truth((bits & 0xFF) != 0);
    allowed value;
    value.least = value.most = decode(bits, element_of(what.type));
    value.bits = bits;
    value.bits_type = what.type;
    return value;
}

std::string describe(double value, std::uint64_t bits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.9g (0x%lx)", value, bits);
    return text;
}

std::string describe(double value, data_type type) {
    return describe(value, encode(value, element_of(type)));
}

bool is_negative_zero(double value) {
    return value == 0 && std::signbit(value);
}

} // namespace

int tolerance_ulps(node_kind kind) {
    const bool is_approximate =
        kind == node_kind::exp || kind == node_kind::tanh || kind == node_kind::sigmoid;
    return is_approximate ? 2 : 0;
}

allowed evaluate(const jit::expression& what, std::span<const std::uint32_t> elements) {
    std::vector<allowed> values;
    std::size_t inputs = 0;
    for (const node& each : what.nodes) {
        const auto argument = [&](std::size_t i) -> const allowed& {
            static const allowed none;
            return each.arguments[i] < 0 ? none
                                         : values[static_cast<std::size_t>(each.arguments[i])];
        };
        if (each.kind == node_kind::input)
            values.push_back(input(each, elements[inputs++]));
        else if (each.kind == node_kind::greater_equal)
            values.push_back(compare(argument(0), argument(1)));
        else if (each.kind == node_kind::select)
            values.push_back(!argument(0).truth ? anything()
                                                : argument(*argument(0).truth ? 1 : 2));
        else
            values.push_back(compute_range(each, argument(0), argument(1)));
    }
    return values.back();
}

std::string complain(const allowed& expected, std::uint32_t actual, data_type type) {
    if (expected.is_anything) return "";
    const double got = decode(actual, element_of(type));
    if (expected.bits && expected.bits_type == type)
        return *expected.bits == actual
                   ? ""
                   : "expected the bits of " + describe(expected.least, *expected.bits) + ", got " +
                         describe(got, actual);
    const double least = round_to(expected.least, type), most = round_to(expected.most, type);
    if (std::isnan(least) && std::isnan(got)) return "";
    const bool sign_fits = !expected.is_exact || is_negative_zero(least) == is_negative_zero(got);
    if (got >= least && got <= most &&
        (sign_fits || type == data_type::i8 || type == data_type::u8))
        return "";
    return "expected " + describe(least, type) + " to " + describe(most, type) + ", got " +
           describe(got, actual);
}

} // namespace maskwise::test
