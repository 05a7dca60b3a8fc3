#pragma once

#include "attention/mask_map.hpp"
#include "base/scratch.hpp"
#include "kernel/kernel_table.hpp"
#include "maskwise/attention.hpp"
#include "plan/row_plan.hpp"
#include "tensor/position.hpp"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

namespace maskwise {

inline constexpr std::int64_t most_tile_rows = 64, most_tile_keys = 128;

// An operand as seen from a head of dst: a matrix and its strides. Broadcast dimensions have stride
// 0.
struct head_operand {
    elem_type type = elem_type::f32;
    std::int64_t row_bytes = 0, column_bytes = 0;
    dims outer_bytes;              // strides of the dimensions of tile_plan::outer
    std::int64_t shared_by = 1;    // heads of query per head of this operand
    std::int64_t column_count = 0; // 0: the operand is absent
    std::int64_t shared_rows = 0;  // if folded heads share a mask: its number of rows; else 0
    // For a paged cache: rows per page, and the page stride in bytes; else 0.
    std::int64_t page_keys = 0, page_bytes = 0;

    std::int64_t shared_row(std::int64_t row) const {
        return shared_rows == 0 ? row : row % shared_rows;
    }
};

// A worker's record of one tile of keys or values. `rows` is the worker's copy, in the layout that
// the product kernels read. If the kernels can read the tile in place, `rows` is the client's
// matrix at the first read. The second read makes the copy.
struct tile_copy {
    const std::byte* source = nullptr; // first element in client memory
    std::int64_t gathered = 0; // if tiles are gathered: the tile's index over all sequences; else 0
    std::int64_t keys = 0;
    strided_matrix rows;
};

// Copies that a worker caches, because a head's row tiles use the same keys and values. Offsets are
// in floats.
struct tile_copies {
    std::int64_t slots = 0, tile_floats = 0;
    std::int64_t first = 0;   // offset of the copies: tile_floats for each slot
    std::int64_t records = 0; // offset of the records: a tile_copy for each slot
};

// Offsets, in floats, of the parts of a worker's scratch. Each part begins on a cache line.
struct worker_layout {
    std::int64_t queries = 0, state = 0, scores = 0, factor = 0, values = 0, bias = 0, slopes = 0,
                 conds = 0, sums = 0, tiles = 0, work = 0, spans = 0, summaries = 0,
                 panel_spans = 0, mask = 0, gathered = 0,
                 floats = 0; // `floats` is the total
    tile_copies key_copies, value_copies;
};

// Scalar parameters of one execution. The defaults, from the description, are tile_plan::numbers.
struct attention_numbers {
    float scale = 1;
    float soft_cap = 0; // 0: none
    score_steps steps;  // scale and soft cap again, as the kernels apply them
    float fill = 0;
    // Whether gradients must equal those of the graph's separate operators. If so, masked scores
    // with a finite fill have gradients, weights are computed from the given statistics, and
    // weights and the scores' gradients are rounded to the type of queries. Else statistics that
    // are too large for exact weights are computed again.
    bool gradients_by_operators = false;

    bool fill_is_minus_infinity() const { return fill == -std::numeric_limits<float>::infinity(); }
};

struct tile_plan {
    attention_desc desc; // the client's, with omitted strides, dst and scale filled in
    const kernel_table* kernels = nullptr;
    const attention_kernels* products = nullptr; // the kernels for the chosen panel
    // Extents of dst before {rows, columns}; `heads` is their product. Heads that share keys and
    // values, and have few queries, are folded into the rows of one head.
    dims outer;
    // heads * rows * keys * (depth + columns) is at most 2^60.
    std::int64_t heads = 0, rows = 0, keys = 0, depth = 0, columns = 0;
    head_operand query, key, value, cond, bias, sinks, dst, statistics;
    // How many heads of the description are one head of the plan. Row r of the plan is row r %
    // query_rows of folded head r / query_rows. Sinks have a row for each folded head.
    std::int64_t folded_heads = 1, query_rows = 0;
    attention_numbers numbers;
    // A tile is tile_rows queries x tile_keys keys. The last tile may be smaller. tile_rows is a
    // multiple of panel.
    std::int64_t panel = 0, tile_rows = 0, tile_keys = 0;
    bool key_is_transposed = false; // consecutive keys are adjacent, not the elements of a key
    // Whether f32 products need dense f32 copies of keys and values, made tile by tile.
    bool converts_key = false, converts_value = false;
    std::int64_t cache_pages = 0;
    bool gathers = false; // a page may end inside a tile, so key and value tiles are copied
    // in_pairs: keys and queries are bf16 pairs in products, and the scale is applied to the
    // scores, not to the queries. weights_in_pairs: weights and values are bf16 pairs, too.
    bool in_pairs = false, weights_in_pairs = false;
    elem_type weights_type = elem_type::f32;
    // Whether norms of queries and keys may bound the scores, to skip tiles with a low bias.
    bool can_bound_scores = false;
    mask_layout mask, bias_mask; // of cond and bias
    worker_layout worker;
    mutable scratch_pool<scratch_memory> scratch;
    // The number of score tiles that all executions have computed so far.
    mutable std::atomic<std::int64_t> computed_tiles = 0;

    std::int64_t row_tiles() const { return (rows + tile_rows - 1) / tile_rows; }
    std::int64_t key_tiles() const { return (keys + tile_keys - 1) / tile_keys; }
    // Steps of a product of a query and a key: elements, or pairs.
    std::int64_t depth_steps() const { return in_pairs ? depth / 2 : depth; }
    // A range of keys must begin at a multiple of this, or the summation order (and the last bits)
    // change.
    std::int64_t key_alignment() const { return weights_in_pairs ? 2 : products->key_alignment; }
    // With this many keys per query, memory limits the products, so keys and values are prefetched.
    bool waits_for_keys() const { return keys >= 4 * rows; } // mutate.py: skip
    bool has_float_values() const { return !converts_value && value.type == elem_type::f32; }
    std::int64_t panel_query_floats() const { return panel * padded_elems(depth_steps()); }
    // If in_pairs, only transposed keys are repacked. In other keys, the elements of a pair are
    // adjacent.
    bool repacks_key() const { return converts_key && (!in_pairs || key_is_transposed); }
    bool repacks_value() const { return converts_value || weights_in_pairs; }
    bool copies_key() const { return gathers || repacks_key(); }
    bool copies_value() const { return gathers || repacks_value(); }
    bool copies_value_as_floats() const { return converts_value && !weights_in_pairs; }
    // Whether products use AMX. Threads must then set up AMX tiles, which the system may refuse.
    bool multiplies_by_tiles() const { return in_pairs && products->begin_products != nullptr; }
    // Whether the scores of all keys are computed before the first weight.
    bool retains_scores() const { return desc.order != attention_order::tiles; }
    // Floats of a panel_state for all rows of a tile.
    std::int64_t state_floats() const { return tile_rows * (2 + columns); }
};

// What a plan may use. For gradients and order `fixed`, some members are false.
struct plan_limits {
    bool folds_heads = true, has_narrow_panels = true, has_pairs = true, has_wide_tiles = true;
};

// Returns a plan with these kernels. Assumes that the system allows AMX tiles. Throws as
// compile(attention_desc) documents.
std::shared_ptr<const tile_plan> make_tile_plan(const attention_desc& desc,
                                                const kernel_table& kernels,
                                                const plan_limits& limits = {});
// Returns a plan with the kernels of `target`, without AMX tiles if the system refuses them.
std::shared_ptr<const tile_plan> make_tile_plan(const attention_desc& desc, isa target);

// Describes an operand {outer..., rows, columns} with known strides as one matrix per head.
head_operand bind_operand(const tensor_desc& operand, const dims& outer, std::int64_t rows,
                          std::int64_t columns);
// Describes an operand that lacks the last `dimensions` dimensions (1 or 2).
head_operand bind_operand_without(int dimensions, tensor_desc operand, const dims& outer,
                                  std::int64_t rows);

// Adds a part of `floats` floats to a worker's layout and returns its offset.
template <class Layout>
std::int64_t add_part(Layout& layout, std::int64_t floats) {
    constexpr std::int64_t line_floats = scratch_alignment / sizeof(float);
    const std::int64_t offset = layout.floats;
    layout.floats += (floats + line_floats - 1) / line_floats * line_floats;
    return offset;
}

// Returns the scale's steps, then the soft cap's. Steps without effect are left out.
score_steps steps_of(float scale, float soft_cap);

// The first element of an f32, bf16 or f16 operand, as f32.
float number_at(const tile_plan& plan, data_type type, const void* address);

// Bytes from the operand's element {0, ..., 0} to the matrix of the head at `position`.
std::int64_t offset_bytes(const head_operand& operand, std::span<const std::int64_t> position);

std::string to_string(const tile_plan& plan);
std::string explain(const tile_plan& plan);

} // namespace maskwise
