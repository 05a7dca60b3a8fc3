#include "support/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

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

// Returns the bits of a finite number, rounded to nearest even. On overflow, the bits are at least
// those of infinity.
std::uint64_t rounded(double size, number_format format) {
    constexpr int fraction_bits = 52, bias = 1023;
    const auto fields = std::bit_cast<std::uint64_t>(size);
    const int exponent = static_cast<int>(fields >> fraction_bits) - bias;
    const int least = least_exponent(format);
    // `units` counts units in the last place, so that a carry into the exponent is correct.
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

std::optional<number_format> format_of(element type) {
    switch (type) {
    case element::f16:
        return f16_format;
    case element::bf16:
        return bf16_format;
    default:
        return std::nullopt;
    }
}

std::uint64_t encode_whole(double value, int bits, bool is_signed) {
    if (std::isnan(value)) return 0;
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
    const double least = is_signed ? -std::ldexp(1.0, bits - 1) : 0,
                 rounded = std::nearbyint(value);
    // 2^63 - 1 becomes 2^63 as a double, which is not an s64.
    if (rounded >= std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1)
        return is_signed ? all >> 1 : all;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::max(rounded, least))) & all;
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

std::int64_t width_bytes(element type) {
    switch (type) {
    case element::f64:
    case element::s64:
        return 8;
    case element::f32:
    case element::s32:
        return 4;
    case element::f16:
    case element::bf16:
        return 2;
    case element::s8:
    case element::u8:
    case element::boolean:
        return 1;
    }
    return 0;
}

double decode(std::uint64_t bits, element type) {
    if (const auto format = format_of(type))
        return decode(static_cast<std::uint32_t>(bits), *format);
    if (type == element::f64) return std::bit_cast<double>(bits);
    if (type == element::f32)
        return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    const auto unused = static_cast<int>(64 - 8 * width_bytes(type));
    if (type == element::boolean) return bits << unused != 0 ? 1 : 0;
    if (type == element::u8) return static_cast<double>(bits << unused >> unused);
    return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

std::uint64_t encode(double value, element type) {
    if (const auto format = format_of(type)) return encode(value, *format);
    if (type == element::f64) return std::bit_cast<std::uint64_t>(value);
    if (type == element::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (type == element::boolean) return value != 0 ? 1 : 0;
    return encode_whole(value, static_cast<int>(8 * width_bytes(type)), type != element::u8);
}

double round_to(double value, element type) {
    return decode(encode(value, type), type);
}

double load(const std::byte* from, element type) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, from, static_cast<std::size_t>(width_bytes(type)));
    return decode(bits, type);
}

void store(std::byte* to, element type, double value) {
    const std::uint64_t bits = encode(value, type);
    std::memcpy(to, &bits, static_cast<std::size_t>(width_bytes(type)));
}

double step_f32(double value, int steps) {
    auto result = static_cast<float>(value);
    const float towards = steps < 0 ? -std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::infinity();
    for (int i = 0; i < std::abs(steps); ++i) result = std::nextafterf(result, towards);
    return result;
}

} // namespace maskwise::test
