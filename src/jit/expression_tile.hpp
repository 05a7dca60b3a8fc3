#pragma once

#include "jit/expression.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace maskwise::jit {

// Operands are numbered as the expression's inputs are; dst is the last.
inline constexpr std::size_t dst_operand = max_inputs;
inline constexpr std::size_t max_operands = max_inputs + 1;

// The argument of a compiled expression: rows x columns elements, both at least 1. Strides
// between rows are in bytes and may be 0 or negative; elements may lie at any address. The pointers
// are advanced by the call. It reads each input's elements of these rows once and nothing else, and
// writes dst's once. dst may be an input of the same type and row stride.
struct expression_tile {
    std::array<std::byte*, max_operands> at;
    std::array<std::int64_t, max_operands> row_bytes;
    std::int64_t rows;
    std::int64_t columns;
};
using expression_fn = void (*)(expression_tile*);

} // namespace maskwise::jit
