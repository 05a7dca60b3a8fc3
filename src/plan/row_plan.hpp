#pragma once

#include "kernel/kernel_table.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace maskwise {

// What is done to each row of a tensor of scores, in order: the chain around a Select in attention.
enum class row_step_kind : std::uint8_t {
    elementwise,   // row = row op operand, row = op(row)
    select_causal, // row = (row number + offset >= column number) ? row : operand
    soft_max,      // over the row; the last step
};

struct row_step {
    row_step_kind kind = row_step_kind::elementwise;
    row_operator op = row_operator::add;
    int operand = -1;         // index into operands; -1 for soft_max and operators of the row alone
    int cond = -1;            // index into operands, for select_kept and select_masked
    bool inf_as_zero = false; // soft_max: a row of -inf gives zeros, not NaN
};

// A chain over descriptors, not yet over rows. scores and result have one shape; the last dimension
// is the row and dense in both. Operands broadcast to that shape.
struct row_desc {
    tensor_desc scores, result;
    std::vector<tensor_desc> operands;
    std::vector<row_step> steps;
    // Of i8 and u8 results: value * scale + zero_point, rounded.
    float scale = 1;
    float zero_point = 0;
    // log(sum(exp(row))) of the SoftMax, f32, one element a row.
    std::optional<tensor_desc> statistics;
};

// An operand as the walk over rows meets it.
struct row_operand {
    row_type type = row_type::f32;
    bool is_scalar = false; // one element a row
    dims strides_bytes;     // of the dimensions before the last
};

// Immutable; any number of threads may run it.
struct row_plan {
    const row_kernels* kernels = nullptr;
    dims outer;            // extents before the last
    std::int64_t rows = 0; // their product
    std::int64_t columns = 0;
    row_operand scores, result;
    std::optional<row_operand> statistics;
    std::vector<row_operand> operands;
    std::vector<row_step> steps; // without the soft_max
    bool has_soft_max = false, inf_as_zero = false;
    float scale = 1, zero_point = 0;
    bool streams = false; // stores past the caches, where the result is not in the scores' place
};

// Rows up to this are held in L1 from the first pass to the last; longer ones are computed twice,
// in pieces.
inline constexpr std::int64_t held_row_columns = 8192;
// More operands than this are never read by one chain.
inline constexpr std::size_t max_row_operands = 8;

// A plan on the kernels of `target`. Throws invalid_argument where a type, a stride or a size is
// outside what rows can be run for. Results that with the scores are `stream_from_bytes` or more
// are stored past the caches.
row_plan make_row_plan(const row_desc& desc, isa target,
                       std::int64_t stream_from_bytes = std::numeric_limits<std::int64_t>::max());

// "16x32 rows of 33, f32 to f32: select_kept divide add soft_max".
std::string to_string(const row_plan& plan);

} // namespace maskwise
