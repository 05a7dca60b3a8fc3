#pragma once

#include "kernel/rows/contract.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace maskwise {

// The arithmetic of attention on a panel: a few queries side by side in the lanes of vectors, so
// that keys, depth and columns of values are loops. Whatever belongs to a panel is f32,
// [..][panel], where panel is attention_kernels::panel(), and every lane of it may be read and
// written, also those behind the last query. Client memory is read and written for exactly the
// elements described.

// A matrix of the client's; strides are any.
struct strided_matrix {
    std::byte* first = nullptr; // element {0,0}; inputs are not written
    row_type type = row_type::f32;
    std::int64_t row_bytes = 0, column_bytes = 0;
};

// c[i][q] = c[i][q] * factor[q] + the sum over k of a[i][k] * b[k][q]; without a factor c is
// overwritten, or goes on: the sum begins with c. With a the keys and b the queries, c are scores;
// with a the values, transposed, and b the weights, c are results.
struct panel_product {
    const std::byte* a = nullptr; // any alignment
    std::int64_t row_bytes = 0, step_bytes = 0;
    std::int64_t rows = 0, steps = 0;
    const float* b = nullptr; // of load_queries, or weights: [steps][panel]
    float* c = nullptr;       // [rows][panel]; values of few queries are [panel][rows]
    const float* factor = nullptr;
    std::int64_t queries = 0; // lanes that count
    bool goes_on = false;     // without a factor
    row_type type = row_type::f32;
    std::int64_t ahead_bytes = 0; // to the same of the tile behind, to ask for; 0: nothing
};

// What is known of the queries of a panel after some of the keys.
struct panel_state {
    float* maximum = nullptr; // of the scores; -infinity before the first key
    float* sum = nullptr;     // of exp(score - maximum)
    float* values = nullptr;  // weighted with that: [columns][panel], of few [panel][columns]
};

// What is known of some numbers; where one is NaN, that only.
struct number_range {
    float least = std::numeric_limits<float>::infinity();
    float largest = -std::numeric_limits<float>::infinity();
    bool has_nan = false;
};

// Scores times or over numbers, one rounding each, around a tanh.
struct score_factor {
    float number = 1;
    bool divides = false;
};
inline constexpr std::size_t max_score_factors = 20;
struct score_steps {
    std::array<score_factor, max_score_factors> factors = {};
    std::size_t count = 0, before_tanh = 0;
    bool has_tanh = false;

    // A division by a power of two is a product of the same result. Bits, since a library that
    // needs libm loads it too early for Intel's, which comes with oneDNN 3.2.
    void append(score_factor factor) {
        const auto bits = std::bit_cast<std::uint32_t>(factor.number);
        const std::uint32_t exponent = bits >> 23 & 0xFF;
        const bool is_power = (bits & 0x7FFFFF) == 0 && exponent > 1 && exponent < 253;
        if (factor.divides && is_power) factor = {1 / factor.number, false};
        factors[count++] = factor;
    }
    void append_tanh() {
        has_tanh = true;
        before_tanh = count;
    }
    bool is_empty() const { return count == 0 && !has_tanh; }
};

// Scores of some keys: factors, bias, selection. A side that is the same for all queries has one
// element a key: its step is 1, else panel.
struct panel_scores {
    float* scores = nullptr;    // [keys][panel]; become exp(score - maximum)
    std::int64_t first_key = 0; // of the tile's; even where weights are pairs
    std::int64_t keys = 0, queries = 0;
    bool in_pairs = false; // weights are stored as bf16, those of two keys in one place
    score_steps steps;
    const float* bias = nullptr; // null: none
    std::int64_t bias_step = 0;
    bool bias_on_fill = false;       // added behind the selection
    const std::byte* cond = nullptr; // null: none
    std::int64_t cond_step = 0;
    // [2][panel], or [4][panel] with two: of each query the first key that it keeps of these, and
    // how many; null: all are kept.
    const std::int32_t* spans = nullptr;
    bool has_second_span = false;
    float fill = 0;
};

struct attention_kernels {
    std::int64_t (*panel)();
    // Products of keys and queries, and of values and weights.
    void (*multiply_keys)(const panel_product& product);
    void (*multiply_values)(const panel_product& product);
    // The same products of pairs of bf16, summed in f32; null where the instruction set has no
    // kernel for them. Those of AVX-512 need a CPU with has_bf16_products and pay where it
    // gains_by_bf16_products. `a` is of load_pairs, or the pairs of a row lie side by side.
    void (*multiply_key_pairs)(const panel_product& product);
    void (*multiply_value_pairs)(const panel_product& product);
    // Brings maximum and sum up to date; `factor` becomes that of the values so far.
    void (*weigh)(const panel_scores& what, const panel_state& state, float* factor);
    // The three parts of that for scores of all keys: finishes scores and brings maximum up to
    // date; makes exponentials of scores and adds them to sum; multiplies these with a factor a
    // query and rounds to `type`.
    void (*finish)(const panel_scores& what, float* maximum);
    void (*exponentiate)(const panel_scores& what, const panel_state& state);
    void (*normalize)(const panel_scores& what, const float* factor, row_type type);
    // Joins two states of disjoint keys; with a step of 1 all queries have the same values.
    void (*merge)(const panel_state& into, const panel_state& from, std::int64_t values_step,
                  std::int64_t columns, std::int64_t queries);
    // values = values * factor + sums for queries [first, last) of a panel alone; without a factor
    // values = sums.
    void (*join_sums)(float* values, const float* sums, const float* factor, std::int64_t first,
                      std::int64_t last, std::int64_t columns);
    // Rows as dense f32.
    void (*load_rows)(const strided_matrix& from, std::int64_t rows, std::int64_t columns,
                      float* to);
    // Rows of bf16 two by two, (rows + 1) / 2 x columns pairs; the last may have a 0. Elements of a
    // row lie side by side. Returns where the pairs are, in the order that their products like.
    strided_matrix (*load_pairs)(const strided_matrix& from, std::int64_t rows,
                                 std::int64_t columns, bool asks_ahead, float* to);
    // Queries times the factor, as products take them: panel() * padded_elems(columns) floats.
    // `work` has room for the queries as dense f32.
    void (*load_queries)(const strided_matrix& from, std::int64_t queries, std::int64_t columns,
                         float factor, float* to, float* work);
    // Rows of queries as [columns][panel], likewise; lanes behind them are 0.
    void (*load_panel)(const strided_matrix& from, std::int64_t queries, std::int64_t columns,
                       float factor, float* to, float* work);
    // Bytes, [keys][panel].
    void (*load_conds)(const strided_matrix& from, std::int64_t queries, std::int64_t keys,
                       std::byte* to);
    // Takes rows of numbers into the range.
    void (*see_rows)(const strided_matrix& from, std::int64_t rows, std::int64_t columns,
                     number_range& seen);
    // The largest Euclidean norm of a row; NaN where one is.
    float (*largest_norm)(const strided_matrix& from, std::int64_t rows, std::int64_t columns);
    // Adds up rows of f32.
    void (*add_rows)(const std::byte* rows, std::int64_t row_bytes, std::int64_t count,
                     std::int64_t columns, float* sums);
    // Each query's values times its factor become a row, zeros where that is 0. Overwrites the
    // values; `work` has room for them and a vector.
    void (*store_panel)(float* values, const float* factors, std::int64_t queries,
                        std::int64_t columns, const strided_matrix& to, float* work);
    // On a thread, around its products of pairs; null where these need nothing.
    void (*enter)() = nullptr;
    void (*leave)() = nullptr;
    // Products take an `a` of any type where the elements of a row, or of a step, lie side by side;
    // otherwise f32 only.
    bool takes_any_type = false;
    // Sums of weights depend on where the first key lies, but for a multiple of this.
    std::int64_t keys_together = 1;
};

} // namespace maskwise
