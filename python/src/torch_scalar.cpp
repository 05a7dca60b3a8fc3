#include "torch_scalar.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace maskwise::python {
namespace {

// The members of a c10::Scalar.
struct scalar_members {
    enum class tag : std::int32_t { f64 = 0, i64 = 1 };

    tag kind;
    alignas(16) union {
        double f64;
        std::int64_t i64;
    } value;
};

template <class Value>
torch_element bytes_of(Value value) {
    torch_element bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

template <class Integer>
std::optional<torch_element> as_integer(std::int64_t value) {
    using limits = std::numeric_limits<Integer>;
    if (value < std::int64_t{limits::min()} || value > std::int64_t{limits::max()})
        return std::nullopt;
    return bytes_of(static_cast<Integer>(value));
}

// Rounded to the nearest, ties to even.
std::optional<torch_element> as_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return bytes_of(static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16));
}

// Converts zero, infinity, and normal f16 numbers that need no rounding; else returns nullopt.
std::optional<torch_element> as_f16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    if (value == 0) return bytes_of(sign);
    if (std::isinf(value)) return bytes_of(static_cast<std::uint16_t>(sign | 0x7C00));
    constexpr std::uint32_t bias_difference = 127 - 15;
    const std::uint32_t exponent = bits >> 23 & 0xFF;
    if (exponent <= bias_difference || (bits & 0x1FFF) != 0) return std::nullopt;
    const std::uint32_t rest = (exponent - bias_difference) << 10 | (bits >> 13 & 0x3FF);
    return bytes_of(static_cast<std::uint16_t>(sign | rest));
}

// False for NaN, and for finite numbers beyond the type's largest number, which torch refuses.
template <class Number>
bool fits(Number number, double largest) {
    const auto value = static_cast<double>(number);
    return std::abs(value) <= largest || std::isinf(value);
}

template <class Number>
std::optional<torch_element> as_real(Number number, data_type type) {
    constexpr double largest_f32 = std::numeric_limits<float>::max();
    constexpr double largest_bf16 = 0x1.FEp127;
    constexpr double largest_f16 = 65504;
    const auto single = static_cast<float>(number);
    switch (type) {
    case data_type::f64:
    case data_type::complex128:
        return bytes_of(static_cast<double>(number)); // the imaginary part is 0
    case data_type::f32:
    case data_type::complex64:
        if (fits(number, largest_f32)) return bytes_of(single);
        return std::nullopt;
    case data_type::bf16:
        if (fits(number, largest_bf16)) return as_bf16(single);
        return std::nullopt;
    case data_type::f16:
        if (fits(number, largest_f16)) return as_f16(single);
        return std::nullopt;
    default:
        return std::nullopt;
    }
}

std::optional<torch_element> as_integer_of(std::int64_t number, data_type type) {
    switch (type) {
    case data_type::u8:
        return as_integer<std::uint8_t>(number);
    case data_type::i8:
        return as_integer<std::int8_t>(number);
    case data_type::i16:
        return as_integer<std::int16_t>(number);
    case data_type::i32:
        return as_integer<std::int32_t>(number);
    case data_type::i64:
        return as_integer<std::int64_t>(number);
    default:
        return as_real(number, type);
    }
}

} // namespace

std::optional<torch_element> element_of(const torch_scalar& number, data_type type) {
    const auto& scalar = reinterpret_cast<const scalar_members&>(number);
    switch (scalar.kind) {
    case scalar_members::tag::f64:
        return as_real(scalar.value.f64, type);
    case scalar_members::tag::i64:
        return as_integer_of(scalar.value.i64, type);
    default:
        return std::nullopt;
    }
}

} // namespace maskwise::python
