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

// The row kernel's word for a type that rows may have; for any other f32.
constexpr elem_type elem_type_of(data_type type) {
    if (type == data_type::bf16) return elem_type::bf16;
    if (type == data_type::f16) return elem_type::f16;
    if (type == data_type::i8) return elem_type::i8;
    return type == data_type::u8 ? elem_type::u8 : elem_type::f32;
}

// The steps that each row of scores goes through, in order: the chain around a Select. `side`,
// `cond` and the like are operand numbers.
struct row_change { // row = op(row)
    row_operator op;
    row_constants constants = {};
};
struct row_combine { // row = row op side
    row_operator op;
    std::size_t side;
};
struct row_select { // row = cond ? row : side, or the other way round
    row_operator op;
    std::size_t cond, side;
};
struct row_causal_select { // row = row number + offset >= column number ? row : side
    std::size_t side;
};
using row_step = std::variant<row_change, row_combine, row_select, row_causal_select>;

// Runs over the row after the steps.
struct row_soft_max {
    bool inf_as_zero = false; // a row of -inf gives zeros, not NaN
    bool nan_as_zero = false; // every row of NaN does
};

// Converts to i8 or u8 after that: value / scale + zero_point, rounded.
struct row_quantize {
    float scale, zero_point;
};

// A chain over descriptors, not yet over rows. scores and result have one shape, to which operands
// broadcast. For a SoftMax and a causal mask the last dimension is the row; else a row is whatever
// all walk alike. It is dense in scores and result, in operands dense or one element.
struct row_desc {
    tensor_desc scores, result;
    std::vector<tensor_desc> operands;
    std::vector<row_step> steps;
    std::optional<row_soft_max> soft_max;
    std::optional<row_quantize> quantize;
    // log(sum(exp(row))) of the SoftMax, f32, one element a row.
    std::optional<tensor_desc> statistics;
};

// As the list names it: "select_kept".
std::span<const char* const> row_operator_names();

bool is_causal(const std::vector<row_step>& steps);

// An operand as the walk over rows meets it.
struct row_operand {
    elem_type type = elem_type::f32; // a cond has none
    std::int64_t width_bytes = 4;
    bool is_scalar = false; // one element a row
    dims strides_bytes;     // of the dimensions before the last
};

// Immutable; any number of threads may run it.
struct row_plan {
    const row_kernels* kernels = nullptr;
    dims outer;            // extents before the row
    std::int64_t rows = 0; // their product
    std::int64_t columns = 0;
    std::int64_t last_columns =
        0; // where the last of `outer` counts pieces of a row: the last one's
    row_operand scores, result;
    std::optional<row_operand> statistics;
    std::vector<row_operand> operands;
    std::vector<row_step> steps;
    std::optional<row_soft_max> soft_max;
    float scale = 1, zero_point = 0; // what leaves is value * scale + zero_point
    bool streams = false; // stores past the caches, where the result is not in the scores' place
};

// Rows up to this are held in L1 from the first pass to the last; longer ones are computed twice,
// in pieces.
inline constexpr std::int64_t held_row_columns = 8192;
// More operands than this are never read by one chain.
inline constexpr std::size_t max_row_operands = 8;

// A plan on the kernels of `target`. Throws argument_error where a type, a stride or a size is
// outside what rows can be run for. Results that with the scores are `stream_from_bytes` or more
// are stored past the caches.
row_plan make_row_plan(const row_desc& desc, isa target,
                       std::int64_t stream_from_bytes = std::numeric_limits<std::int64_t>::max());

// "16 rows of 33: divide select add soft_max".
std::string to_string(const row_plan& plan);

} // namespace maskwise
