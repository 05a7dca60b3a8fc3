#include "support/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace maskwise::test {
namespace {

int least_exponent(number_format format) {
    return 2 - (1 << (format.exponent_bits - 1));
}

std::uint32_t sign_of(number_format format) {
    return std::uint32_t{1} << (format.exponent_bits + format.fraction_bits);
}

std::uint32_t infinity_of(number_format format) {
    return ((std::uint32_t{1} << format.exponent_bits) - 1) << format.fraction_bits;
}

// To nearest even, of a finite number; what is too large comes out as infinity or above.
std::uint64_t rounded(double size, number_format format) {
    constexpr int fraction_bits = 52, bias = 1023;
    const auto fields = std::bit_cast<std::uint64_t>(size);
    const int exponent = static_cast<int>(fields >> fraction_bits) - bias;
    const int least = least_exponent(format);
    // In units of the last place. Carries into the next exponent come out right by adding.
    const std::uint64_t hidden = std::uint64_t{1} << fraction_bits;
    const std::uint64_t all = (fields & (hidden - 1)) | hidden;
    const int dropped =
        std::min(fraction_bits - format.fraction_bits + std::max(least - exponent, 0), 54);
    const std::uint64_t half = std::uint64_t{1} << (dropped - 1), rest = all & (2 * half - 1);
    std::uint64_t units = all >> dropped;
    units += rest > half || (rest == half && units % 2 == 1) ? 1U : 0U;
    const auto offset = static_cast<std::uint64_t>(std::max(exponent, least) - least);
    return (offset << format.fraction_bits) + units;
}

} // namespace

double decode(std::uint32_t bits, number_format format) {
    const std::uint32_t rest = bits & (sign_of(format) - 1);
    const double sign = (bits & sign_of(format)) != 0 ? -1.0 : 1.0;
    if (rest > infinity_of(format)) return std::numeric_limits<double>::quiet_NaN();
    if (rest == infinity_of(format)) return sign * std::numeric_limits<double>::infinity();
    const auto exponent = static_cast<int>(rest >> format.fraction_bits);
    const std::uint32_t hidden = std::uint32_t{1} << format.fraction_bits;
    const double units = (rest & (hidden - 1)) + (exponent == 0 ? 0 : hidden);
    return sign * std::ldexp(units, std::max(exponent, 1) - 1 + least_exponent(format) -
                                        format.fraction_bits);
}

std::uint32_t encode(double value, number_format format) {
    const std::uint32_t infinity = infinity_of(format);
    if (std::isnan(value)) return infinity | (infinity >> 1);
    const std::uint32_t sign = std::signbit(value) ? sign_of(format) : 0;
    const double size = std::fabs(value);
    if (size == 0) return sign;
    if (std::isinf(size)) return sign | infinity;
    return sign |
           static_cast<std::uint32_t>(std::min<std::uint64_t>(rounded(size, format), infinity));
}

double round_to(double value, number_format format) {
    return decode(encode(value, format), format);
}

double step_f32(double value, int steps) {
    auto at = static_cast<float>(value);
    const float towards = steps < 0 ? -std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::infinity();
    for (int i = 0; i < std::abs(steps); ++i) at = std::nextafterf(at, towards);
    return at;
}

} // namespace maskwise::test
