#pragma once

#include <cstddef>
#include <cstdint>

namespace maskwise {

// f32 arithmetic on one row or on a piece of a row: the operators around a Select, and SoftMax. All
// actions run in registers. Between the passes of SoftMax, the row is in the caller's buffer.
// Kernels access exactly the described elements of client memory. Buffers have room for whole
// blocks of row_block_elems.
inline constexpr std::int64_t row_block_elems = 64;
inline constexpr std::size_t max_row_actions = 12;

constexpr std::int64_t padded_elems(std::int64_t elems) {
    return (elems + row_block_elems - 1) / row_block_elems * row_block_elems;
}

// i8 and u8 are output types only.
enum class elem_type : std::uint8_t { f32, bf16, f16, i8, u8 };

constexpr std::int64_t bytes_of(elem_type type) {
    return type == elem_type::f32 ? 4 : type == elem_type::i8 || type == elem_type::u8 ? 1 : 2;
}

enum class row_operator : std::uint8_t {
#define MASKWISE_ROW_BINARY(name, ...) name,
#define MASKWISE_ROW_REVERSED(name) name,
#define MASKWISE_ROW_SELECT(name) name,
#define MASKWISE_ROW_UNARY(name, ...) name,
#define MASKWISE_ROW_ROUNDING(name) name,
#include "kernel/rows/operators.inc"
};

constexpr bool has_side(row_operator op) {
    return op <= row_operator::select_masked;
}

// The second operand: one element per column, or one value for all columns.
struct row_side {
    elem_type type = elem_type::f32;
    const std::byte* data = nullptr; // column 0 of the row; null: every element is `value`
    float value = 0;
};

// A step of a row_plan with the addresses of one row.
struct row_action {
    row_operator op = row_operator::add;
    row_side side = {};
    // For a select: one byte per column, from column 0 on; any byte but 0 is true.
    const std::byte* cond = nullptr;
    float constant = 0; // leaky_relu: the factor
};

struct row_piece {
    row_side source = {};
    const row_action* actions = nullptr;
    std::size_t action_count = 0;
    std::int64_t first = 0, elems = 0; // columns; elems > 0
};

// Output conversion: value * factor, rounded to nearest even. For i8 and u8, zero_point is added
// before rounding, and the result saturates. With a factor of 1, f32 is copied bit-exactly.
// `streamed`: aligned whole vectors bypass the caches, and the caller must call finish_streaming().
struct row_encoding {
    elem_type type = elem_type::f32;
    float factor = 1;
    float zero_point = 0;
    bool streamed = false;
};

struct row_kernels {
    // Writes the piece to its columns of the row at `dst`. `dst` may be the source row: every
    // element is read before it is overwritten. For f32, bf16 and f16, the factor must be 1.
    void (*write)(const row_piece& piece, const row_encoding& encoding, std::byte* dst);
    // Writes the piece to `buffer`, and overwrites the padding up to padded_elems(elems). Returns
    // the maximum, which may ignore NaNs.
    float (*run)(const row_piece& piece, float* buffer);
    // buffer[i] = exp(x) with x = buffer[i] - shift; returns the sum. Requires buffer[i] <= shift.
    // The relative error of exp is below 2^-22 + |x| * 2^-23. For x < -87.3, the result is 0.
    // Overwrites padding as `run` does. Prefetches 4 * elems bytes from `next`, unless `next` is
    // null.
    float (*exp_sum)(float* buffer, float shift, std::int64_t elems, const std::byte* next);
    // store writes `elems` elements of the buffer. fill writes `value` to `elems` elements. `dst`
    // may have any alignment.
    void (*store)(const float* buffer, const row_encoding& encoding, std::byte* dst,
                  std::int64_t elems);
    void (*fill)(float value, const row_encoding& encoding, std::byte* dst, std::int64_t elems);
    float (*log)(float value);
};

} // namespace maskwise
