#pragma once

#include <cstddef>
#include <cstdint>

namespace maskwise {

// Arithmetic on one row of f32 in a buffer of the caller's: what stands around a Select in
// attention (scale, mask, SoftMax). Buffers are padded: their size in elements is a multiple of
// row_padding_elems, so that whole vectors may be computed and only load and store, which touch the
// client's memory, count elements. Content of the padding is arbitrary but for maximum and exp_sum,
// which want it to be -inf.
inline constexpr std::int64_t row_padding_elems = 16;

constexpr std::int64_t padded_elems(std::int64_t elems) {
    return (elems + row_padding_elems - 1) / row_padding_elems * row_padding_elems;
}

enum class row_type : std::uint8_t { f32, bf16, f16 };

enum class row_operator : std::uint8_t { add, subtract, multiply, divide };

struct row_kernels {
    // buffer[i] = from[i] as f32; `elems` elements, any alignment.
    void (*load)(const std::byte* from, row_type type, float* buffer, std::int64_t elems);
    // to[i] = buffer[i] * factor, rounded to nearest even; `elems` elements, any alignment.
    void (*store)(const float* buffer, float factor, std::byte* to, row_type type,
                  std::int64_t elems);
    // buffer = buffer op side, for `padded` elements.
    void (*combine)(float* buffer, const float* side, row_operator op, std::int64_t padded);
    void (*combine_scalar)(float* buffer, float side, row_operator op, std::int64_t padded);
    // buffer[i] = (cond[i] != 0) == keep_true ? buffer[i] : other[i]; bits are moved.
    void (*select)(float* buffer, const std::byte* cond, const float* other, bool keep_true,
                   std::int64_t padded);
    void (*select_scalar)(float* buffer, const std::byte* cond, float other, bool keep_true,
                          std::int64_t padded);
    float (*maximum)(const float* buffer, std::int64_t padded);
    // buffer[i] = exp(buffer[i] - shift); returns the sum. At most 2 units in the last place off.
    float (*exp_sum)(float* buffer, float shift, std::int64_t padded);
};

} // namespace maskwise
