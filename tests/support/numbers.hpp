#pragma once

#include <cstddef>
#include <cstdint>

namespace maskwise::test {

// The fields of a float type. Conversions share no code with src/.
struct number_format {
    int exponent_bits, fraction_bits; // after the sign
};
inline constexpr number_format f32_format{8, 23}, bf16_format{8, 7}, f16_format{5, 10};

// The number that an element's bits represent.
double decode(std::uint32_t bits, number_format format);

// The bits of `value`, rounded to nearest even. NaN becomes a quiet NaN without payload.
std::uint32_t encode(double value, number_format format);

// decode(encode(value)).
double round_to(double value, number_format format);

// The numeric types, with the values of oneDNN's C enumeration.
enum class element { f16 = 1, bf16, f32, s32, s8, u8, f64, boolean, s64 = 16 };

std::int64_t width_bytes(element type); // 0 for other values

// Converts an element's bits to a number and back. Rounds to nearest even. Integers saturate, and
// NaN becomes 0 in an integer. Any set bit makes a boolean 1.
double decode(std::uint64_t bits, element type);
std::uint64_t encode(double value, element type);
double round_to(double value, element type);
double load(const std::byte* from, element type);
void store(std::byte* to, element type, double value);

// The f32 that is `steps` steps above `value` (below if negative).
double step_f32(double value, int steps);

} // namespace maskwise::test
