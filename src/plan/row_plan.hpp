#pragma once

#include "kernel/kernel_table.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace maskwise {

// The row kernel's element type; f32 for types that rows do not support.
constexpr elem_type elem_type_of(data_type type) {
    if (type == data_type::bf16) return elem_type::bf16;
    if (type == data_type::f16) return elem_type::f16;
    if (type == data_type::i8) return elem_type::i8;
    return type == data_type::u8 ? elem_type::u8 : elem_type::f32;
}

// Steps of the chain around a Select, applied in order to each row of scores. `side` and `cond` are
// indexes into row_desc::operands.
struct row_change { // row = op(row)
    row_operator op;
    float constant = 0;
};
struct row_combine { // row = row op side
    row_operator op;
    std::size_t side;
};
struct row_select { // row = cond ? row : side, or cond ? side : row
    row_operator op;
    // nullopt: causal. cond is then row + causal_offset >= column, and op is select_kept.
    std::optional<std::size_t> cond;
    std::size_t side;
};
using row_step = std::variant<row_change, row_combine, row_select>;

constexpr row_select causal_select(std::size_t side) {
    return {row_operator::select_kept, std::nullopt, side};
}

// The SoftMax of the row, after the steps.
struct row_soft_max {
    bool inf_as_zero = false; // a row of -inf gives zeros, not NaN
    bool nan_as_zero = false; // a row that contains a NaN gives zeros
};

// The conversion of results to i8 or u8: value / scale + zero_point, rounded.
struct row_quantize {
    float scale, zero_point;
};

// A chain of row operations. scores and result have the same shape, and operands broadcast to that
// shape. With a SoftMax or a causal mask, a row is the last dimension. Else a row is the innermost
// loop after merging the loops of all tensors. Along a row, scores and result are dense; an operand
// is dense or has one element.
struct row_desc {
    tensor_desc scores, result;
    std::vector<tensor_desc> operands;
    std::vector<row_step> steps;
    std::optional<row_soft_max> soft_max;
    std::optional<row_quantize> quantize;
    // log(sum(exp(row))) of the SoftMax: f32, one element per row.
    std::optional<tensor_desc> statistics;
};

// Names as in operators.inc, for example "select_kept".
std::span<const char* const> row_operator_names();

bool is_causal(const row_step& step);

// A tensor's layout for the walk over rows.
struct row_operand {
    elem_type type = elem_type::f32; // unused for a cond
    std::int64_t width_bytes = 4;
    bool is_scalar = false; // one element per row
    dims strides_bytes;     // of the dimensions before the last
};

// Immutable; any number of threads may run one plan.
struct row_plan {
    const row_kernels* kernels = nullptr;
    dims outer;            // extents before the row
    std::int64_t rows = 0; // their product
    std::int64_t columns = 0;
    // Columns in the last piece of each row; equal to `columns` if rows are not divided. The last
    // dimension of `outer` counts the pieces of a divided row.
    std::int64_t last_columns = 0;
    row_operand scores, result;
    std::optional<row_operand> statistics;
    std::vector<row_operand> operands;
    std::vector<row_step> steps;
    std::optional<row_soft_max> soft_max;
    float inverse_scale = 1, zero_point = 0; // result = value * inverse_scale + zero_point
    bool streams = false; // stores bypass the caches unless the result overwrites the scores
};

// Rows of a SoftMax up to this length stay in a buffer for all passes. Longer rows are computed
// twice, in pieces.
inline constexpr std::int64_t held_row_columns = 8192;
inline constexpr std::size_t max_row_operands = 8;

// Returns a plan with the kernels of `target`. Throws argument_error for a type, a stride or a size
// that rows do not support. If scores and result have `stream_from_bytes` or more together, stores
// bypass the caches.
row_plan make_row_plan(const row_desc& desc, isa target,
                       std::int64_t stream_from_bytes = std::numeric_limits<std::int64_t>::max());

// "16 rows of 33: divide select add soft_max".
std::string to_string(const row_plan& plan);

} // namespace maskwise
