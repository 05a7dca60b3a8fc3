#pragma once

#include "kernel/kernel_table.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace maskwise {

// What is done to each row of a tensor of scores, in order: the chain around a Select in attention.
enum class row_step_kind : std::uint8_t {
    combine,       // row = row op operand
    select_kept,   // row = cond ? row : operand
    select_masked, // row = cond ? operand : row
    select_causal, // row = (row number + offset >= column number) ? row : operand
    soft_max,      // over the row
};

struct row_step {
    row_step_kind kind = row_step_kind::combine;
    row_operator op = row_operator::add;
    int operand = -1;         // index into operands; -1 for soft_max
    int cond = -1;            // index into operands, for select_kept and select_masked
    bool inf_as_zero = false; // soft_max: a row of -inf gives zeros, not NaN
};

// A chain over descriptors, not yet over rows. scores and result have one shape; the last dimension
// is the row and dense in both. Operands broadcast to that shape.
struct row_desc {
    tensor_desc scores, result;
    std::vector<tensor_desc> operands;
    std::vector<row_step> steps;
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
    std::int64_t rows_in_matrix = 1; // last of outer: what the causal boundary counts
    row_operand scores, result;
    std::vector<row_operand> operands;
    std::vector<row_step> steps;
};

// Longest row whose buffers fit the run-time stack.
inline constexpr std::int64_t max_row_columns = 8192;
// More operands than this are never read by one chain.
inline constexpr std::size_t max_row_operands = 6;

// A plan on the kernels of `target`. Throws invalid_argument where a type, a stride or a size is
// outside what rows can be run for.
row_plan make_row_plan(const row_desc& desc, isa target);

// "16x32 rows of 33, f32 to f32: select_kept divide add soft_max".
std::string to_string(const row_plan& plan);

} // namespace maskwise
