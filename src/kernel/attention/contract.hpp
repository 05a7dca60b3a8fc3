#pragma once

#include "kernel/rows/contract.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace maskwise {

// The arithmetic of attention on a panel of queries. In wide panels, the lanes of vectors are
// queries; keys, depth and columns of values are loops. Panel data is f32 [..][panel], with panel =
// attention_kernels::panel(). Kernels may access all lanes of panel data, even past the last query.
// In client memory, kernels access exactly the described elements.

// A matrix in client memory, with any strides.
struct strided_matrix {
    std::byte* first = nullptr; // element {0,0}; const for inputs
    elem_type type = elem_type::f32;
    std::int64_t row_bytes = 0, column_bytes = 0;
};

// c[i][q] = c[i][q] * factor[q] + sum over k of a[i][k] * b[k][q]. Without factor, c is
// overwritten; with `accumulates`, the sum is added to c. Scores: a is keys, b is queries. Results:
// a is transposed values, b is weights.
struct panel_product {
    const std::byte* a = nullptr; // any alignment
    std::int64_t row_bytes = 0, step_bytes = 0;
    std::int64_t rows = 0, steps = 0;
    const float* b = nullptr; // from load_queries, or weights: [steps][panel]
    float* c = nullptr;       // [rows][panel]; for values in narrow panels: [panel][rows]
    const float* factor = nullptr;
    std::int64_t queries = 0; // lanes in use
    bool accumulates = false; // only without factor
    elem_type type = elem_type::f32;
    std::int64_t ahead_bytes = 0; // distance to the next tile, to prefetch it; 0: none
};

// The online-softmax state of a panel after some of the keys.
struct panel_state {
    float* maximum = nullptr; // of the scores; -infinity before the first key
    float* sum = nullptr;     // of exp(score - maximum)
    float* values = nullptr;  // weighted sums: [columns][panel]; narrow panels: [panel][columns]
};

// The range of some numbers. If has_nan, `least` and `largest` are meaningless.
struct number_range {
    float least = std::numeric_limits<float>::infinity();
    float largest = -std::numeric_limits<float>::infinity();
    bool has_nan = false;
};

// score * number, or score / number; one rounding each.
struct score_factor {
    float number = 1;
    bool divides = false;
};
inline constexpr std::size_t max_score_factors = 20;
struct score_steps {
    std::array<score_factor, max_score_factors> factors = {};
    std::size_t count = 0, before_tanh = 0;
    bool has_tanh = false;

    // Appends the factor. A division by a power of two becomes an exact multiplication. Tests bits
    // instead of calling libm: if Maskwise depended on libm, libm would be loaded before the Intel
    // libm of oneDNN 3.2.
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

// The scores of a tile of keys, with factors, bias and mask. Bias and cond have step `panel`, or
// step 1 if one element per key serves all queries.
struct panel_scores {
    float* scores = nullptr;    // [keys][panel]; become exp(score - maximum)
    std::int64_t first_key = 0; // of the tile; an even number if in_pairs
    std::int64_t keys = 0, queries = 0;
    bool in_pairs = false; // weights become bf16, two keys per f32 slot
    score_steps steps;
    const float* bias = nullptr; // null: none
    std::int64_t bias_step = 0;
    bool bias_on_fill = false;       // added after the mask
    const std::byte* cond = nullptr; // null: none
    std::int64_t cond_step = 0;
    // Per query, [2][panel]: the first unmasked key, relative to first_key, and the number of
    // unmasked keys. [4][panel]: a second span follows. null: all keys are unmasked.
    const std::int32_t* spans = nullptr;
    bool has_second_span = false;
    float fill = 0;
};

// Inputs and outputs of the gradients of a tile's scores.
struct panel_gradients {
    // [keys][panel]: products of values and dst's gradients; become the gradients of the scores.
    float* products = nullptr;
    // A weight is exp(score - maximum - log_sum) of its query.
    const float* maxima = nullptr;
    const float* log_sums = nullptr;
    const float* deltas = nullptr; // dot(dst, gradient of dst) per query
    bool of_bias = false;          // gradients of the bias: without the slope of the soft cap
    bool of_fill = false;          // masked scores have gradients, too
    elem_type rounds_to = elem_type::f32; // of weights and gradients; bf16 if the tile is in_pairs
    // Used only if the tile is in_pairs: weights and gradients as [keys][panel] of bf16. `products`
    // is then overwritten by the gradients as bf16 pairs, in the layout of weights.
    std::uint16_t* weight_rows = nullptr;
    std::uint16_t* gradient_rows = nullptr;
};

struct attention_kernels {
    std::int64_t (*panel)();
    void (*multiply_keys)(const panel_product& product);
    void (*multiply_values)(const panel_product& product);
    // Multiply bf16 pairs, summed in f32; null if the instruction set has no kernel for pairs. On
    // AVX-512, these kernels need has_bf16_products(), and are faster only if
    // gains_by_bf16_products(). `a` comes from load_pairs or has contiguous pairs in each row.
    void (*multiply_key_pairs)(const panel_product& product);
    void (*multiply_value_pairs)(const panel_product& product);
    // Turns scores into weights and updates the state. Writes to `factor` the factors that rescale
    // the accumulated values.
    void (*softmax_update)(const panel_scores& tile, const panel_state& state, float* factor);
    // The three passes of softmax over all keys. apply_mask applies factors, bias and mask, and
    // updates the maximum. exponentiate turns scores into exponentials and adds the tile's sum to
    // the state's. With key_by_key (only wide panels), it adds each exponential to the state's sum,
    // which is less exact. normalize multiplies by a factor per query and rounds to `type`, or to
    // bf16 pairs if in_pairs.
    void (*apply_mask)(const panel_scores& tile, float* maximum);
    void (*exponentiate)(const panel_scores& tile, const panel_state& state, bool key_by_key);
    void (*normalize)(const panel_scores& tile, const float* factor, elem_type type);
    // Merges `other` into `state`; their keys are disjoint. With a values_step of 1, all queries of
    // `other` share one row of values.
    void (*merge)(const panel_state& state, const panel_state& other, std::int64_t values_step,
                  std::int64_t columns, std::int64_t queries);
    // For queries [first, last): values = values * factor + sums. Without factor: values = sums.
    void (*accumulate_sums)(float* values, const float* sums, const float* factor,
                            std::int64_t first, std::int64_t last, std::int64_t columns);
    // Converts rows to dense f32.
    void (*load_rows)(const strided_matrix& src, std::int64_t rows, std::int64_t columns,
                      float* dst);
    // Interleaves rows of bf16 two by two into (rows + 1) / 2 x columns pairs, padded with 0.
    // Elements of a source row must be contiguous. Returns the pairs in the layout that the pair
    // products prefer.
    strided_matrix (*load_pairs)(const strided_matrix& src, std::int64_t rows, std::int64_t columns,
                                 bool prefetches, float* dst);
    // Loads queries times factor in the layout that products read: panel() * padded_elems(columns)
    // floats. `scratch` has room for the queries as dense f32. Products by AMX tiles read
    // load_panel's layout instead.
    void (*load_queries)(const strided_matrix& src, std::int64_t queries, std::int64_t columns,
                         float factor, float* dst, float* scratch);
    // Loads queries times factor in the layout [columns][panel]; lanes past the last query are 0.
    void (*load_panel)(const strided_matrix& src, std::int64_t queries, std::int64_t columns,
                       float factor, float* dst, float* scratch);
    // Writes -slope * |position - key| of keys [0, keys) as [keys][panel], from panel() positions
    // and slopes. Narrow panels write whole vectors, so dst must have room for a multiple of 16
    // keys.
    void (*write_slopes)(const float* positions, const float* slopes, std::int64_t keys,
                         float* dst);
    // Copies conditions as bytes [keys][panel].
    void (*load_conds)(const strided_matrix& src, std::int64_t queries, std::int64_t keys,
                       std::byte* dst);
    // Extends the range by the numbers of these rows.
    void (*update_range)(const strided_matrix& src, std::int64_t rows, std::int64_t columns,
                         number_range& range);
    // Returns the largest Euclidean norm of a row; NaN if any norm is NaN.
    float (*largest_norm)(const strided_matrix& src, std::int64_t rows, std::int64_t columns);
    // Adds rows of f32 to `sums`.
    void (*add_rows)(const std::byte* rows, std::int64_t row_bytes, std::int64_t count,
                     std::int64_t columns, float* sums);
    // Stores each query's values times its factor as a row; zeros if the factor is 0. Overwrites
    // the values. `scratch` has room for the values and one vector.
    void (*store_panel)(float* values, const float* factors, std::int64_t queries,
                        std::int64_t columns, const strided_matrix& dst, float* scratch);
    // Turns tile.scores (products of queries and keys) into weights, and to.products into
    // gradients. Unless of_fill, masked scores have gradients of 0, even if their products are NaN.
    // Returns false if the tile has a mask or bias and a product that is not finite.
    bool (*score_gradients)(const panel_scores& tile, const panel_gradients& to);
    // Stores dense rows of f32.
    void (*store_rows)(const float* rows, std::int64_t row_count, std::int64_t columns,
                       const strided_matrix& dst);
    // Called on a thread before and after its pair products; null if not needed.
    void (*begin_products)() = nullptr;
    void (*end_products)() = nullptr;
    // Whether products accept an `a` of any type, provided that the elements of a row or of a step
    // are contiguous. If false, products accept f32 only.
    bool takes_any_type = false;
    // `first_key` must be a multiple of this, or the summation order (and the last bits) change.
    std::int64_t key_alignment = 1;
};

} // namespace maskwise
