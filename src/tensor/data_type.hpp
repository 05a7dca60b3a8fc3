#pragma once

#include "maskwise/maskwise.hpp"

namespace maskwise {

constexpr bool is_16_bit_float(data_type type) {
    return type == data_type::bf16 || type == data_type::f16;
}

// Types whose arithmetic is in f32. The 16-bit types are converted to f32, and results are rounded
// back.
constexpr bool computes_in_f32(data_type type) {
    return type == data_type::f32 || is_16_bit_float(type);
}

// The types of quantized results.
constexpr bool is_8_bit_integer(data_type type) {
    return type == data_type::i8 || type == data_type::u8;
}

} // namespace maskwise
