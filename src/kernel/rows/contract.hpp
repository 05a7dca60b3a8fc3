#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace maskwise {

// Arithmetic on one row, or a piece of one, in f32: what stands around a Select in attention
// (scale, mask, SoftMax). A row is brought through all its actions in registers, lies in a buffer
// of the caller's in L1 between the passes of SoftMax, and leaves by `store`. The client's memory
// is read and written for exactly the elements counted; buffers have room for whole blocks.
inline constexpr std::int64_t row_block_elems = 64;
// More actions than this are never in one chain.
inline constexpr std::size_t max_row_actions = 12;

constexpr std::int64_t padded_elems(std::int64_t elems) {
    return (elems + row_block_elems - 1) / row_block_elems * row_block_elems;
}

// i8 and u8 can be stored only.
enum class row_type : std::uint8_t { f32, bf16, f16, i8, u8 };

constexpr std::int64_t bytes_of(row_type type) {
    return type == row_type::f32 ? 4 : type == row_type::i8 || type == row_type::u8 ? 1 : 2;
}

enum class row_operator : std::uint8_t {
#define MASKWISE_ROW_BINARY(name, ...) name,
#define MASKWISE_ROW_TURNED(name) name,
#define MASKWISE_ROW_SELECT(name) name,
#define MASKWISE_ROW_UNARY(name, ...) name,
#define MASKWISE_ROW_ROUNDING(name) name,
#include "kernel/rows/operators.inc"
};

// Of leaky_relu the factor, of clamp the least and the greatest value.
using row_constants = std::array<float, 2>;

constexpr bool has_side(row_operator op) {
    return op <= row_operator::select_masked;
}

// Elements of a row, or one for all columns.
struct row_side {
    row_type type = row_type::f32;
    const std::byte* at = nullptr; // of the row's column 0; null: every element is `value`
    float value = 0;
};

// A step of a row_plan, bound to the addresses of one row.
struct row_action {
    row_operator op = row_operator::add;
    row_side side = {};
    // Of a select, from the row's column 0, one byte an element; any but 0 is true.
    const std::byte* cond = nullptr;
    row_constants constants = {};
};

// A piece of a row and what is done to it.
struct row_piece {
    row_side from = {};
    const row_action* actions = nullptr;
    std::size_t action_count = 0;
    std::int64_t first = 0, elems = 0; // columns; at least one
};

// How values become elements: value * factor, and for i8 and u8 plus zero_point, saturated. Rounded
// to nearest even. A factor of 1 leaves f32 as it is, to the bit. `streamed` asks for stores past
// the caches, which whole vectors at their alignment get; the caller issues finish_streaming().
struct row_encoding {
    row_type type = row_type::f32;
    float factor = 1;
    float zero_point = 0;
    bool streamed = false;
};

struct row_kernels {
    // Writes the piece to its columns of the row at `to`, which may be the row that it is made
    // from: all that a store overwrites has been read.
    void (*write)(const row_piece& piece, const row_encoding& how, std::byte* to);
    // Writes the piece to buffer[0] on; what lies behind it, up to padded_elems(elems), is
    // overwritten. Returns its maximum; NaNs may or may not count.
    float (*run)(const row_piece& piece, float* buffer);
    // buffer[i] = exp(buffer[i] - shift), not above 1; returns the sum. At most 2 units in the last
    // place off; what would be below the least normal number is 0. Overwrites as run does. Asks for
    // the 4 * elems bytes at `next` meanwhile, if that is not null.
    float (*exp_sum)(float* buffer, float shift, std::int64_t elems, const std::byte* next);
    // `elems` elements, any alignment: those of the buffer, or one value.
    void (*store)(const float* buffer, const row_encoding& how, std::byte* to, std::int64_t elems);
    void (*fill)(float value, const row_encoding& how, std::byte* to, std::int64_t elems);
    float (*log)(float value);
};

} // namespace maskwise
