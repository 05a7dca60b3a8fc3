#include "jit/element_format.hpp"

#include <cmath>
#include <limits>

namespace maskwise::test {
namespace {

// An IEEE-like layout: sign, exponent, fraction.
struct layout {
    int exponent_bits, fraction_bits;

    int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    int least_exponent() const { return 1 - bias(); }
    std::uint32_t infinity() const {
        return ((std::uint32_t{1} << exponent_bits) - 1) << fraction_bits;
    }
    std::uint32_t sign() const { return std::uint32_t{1} << (exponent_bits + fraction_bits); }
};

layout layout_of(data_type type) {
    if (type == data_type::f16) return {5, 10};
    return type == data_type::bf16 ? layout{8, 7} : layout{8, 23};
}

bool is_byte(data_type type) {
    return type == data_type::i8 || type == data_type::u8;
}

} // namespace

double decode_element(std::uint32_t bits, data_type type) {
    if (type == data_type::u8) return bits & 0xFF;
    if (type == data_type::i8) return static_cast<std::int8_t>(bits);
    const layout as = layout_of(type);
    const std::uint32_t rest = bits & (as.sign() - 1);
    const double sign = (bits & as.sign()) != 0 ? -1.0 : 1.0;
    if (rest > as.infinity()) return std::numeric_limits<double>::quiet_NaN();
    if (rest == as.infinity()) return sign * std::numeric_limits<double>::infinity();
    const auto exponent = static_cast<int>(rest >> as.fraction_bits);
    const double fraction = rest & ((std::uint32_t{1} << as.fraction_bits) - 1);
    const double hidden = exponent == 0 ? 0.0 : std::ldexp(1.0, as.fraction_bits);
    const int power = (exponent == 0 ? as.least_exponent() : exponent - as.bias());
    return sign * std::ldexp(hidden + fraction, power - as.fraction_bits);
}

std::uint32_t encode_element(double value, data_type type) {
    if (is_byte(type)) return static_cast<std::uint32_t>(static_cast<std::int32_t>(value)) & 0xFF;
    const layout as = layout_of(type);
    const std::uint32_t sign = std::signbit(value) ? as.sign() : 0;
    const double size = std::fabs(value);
    if (std::isnan(value)) return as.infinity() | (as.infinity() >> 1);
    if (std::isinf(value)) return sign | as.infinity();
    if (size == 0) return sign;
    const int exponent = std::max(std::ilogb(size), as.least_exponent());
    // In units of the last place, in which nearbyint rounds to nearest even. Carries into the next
    // exponent, and into infinity, come out right by adding.
    const double units = std::nearbyint(std::ldexp(size, as.fraction_bits - exponent));
    const auto scaled = static_cast<std::uint64_t>(units);
    const auto offset = static_cast<std::uint64_t>(exponent - as.least_exponent());
    const std::uint64_t bits = (offset << as.fraction_bits) + scaled;
    return sign | (bits > as.infinity() ? as.infinity() : static_cast<std::uint32_t>(bits));
}

double round_to(double value, data_type type) {
    return decode_element(encode_element(value, type), type);
}

double step_f32(double value, int steps) {
    auto at = static_cast<float>(value);
    const float towards = steps < 0 ? -std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::infinity();
    for (int i = 0; i < std::abs(steps); ++i) at = std::nextafterf(at, towards);
    return at;
}

} // namespace maskwise::test
