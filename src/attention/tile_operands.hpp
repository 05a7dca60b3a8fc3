#pragma once

#include "attention/tile_spans.hpp"

namespace maskwise {

inline constexpr float unknown_norm = -1;

// The mask maps of cond and bias, for all row tiles or for one. Pointers of absent operands are
// null.
struct tile_maps {
    const tile_mask *cond = nullptr, *bias = nullptr;
    const float* highest_bias = nullptr;
    // For each head and key tile, the largest norm of a key, or unknown_norm. Null if scores have
    // no bound.
    float* key_norms = nullptr;
};

// Consecutive queries of a head, with their slice of the mask maps.
struct row_tile {
    std::int64_t first = 0, rows = 0;
    tile_maps maps;
    const tile_spans* spans = nullptr; // null if the rules mask no key
    float best_bias = 0;     // the largest bias of all key tiles; used only with key_norms
    bool has_slopes = false; // the members below are set only if true
    std::int64_t first_position = 0, last_position = 0;
    float least_slope = 0;
};

key_tile classify_tile(const tile_plan& plan, const attention_numbers& numbers,
                       const row_tile& rows, std::int64_t number);

// Whether a deferred or filled tile may have a weight above 0 in a row. `maxima`: the rows' largest
// scores so far. `bound`: upper bound on the tile's scores before bias; infinity if unknown.
bool has_weight(const key_tile& keys, float fill, float bound, const float* maxima,
                std::int64_t rows);

// A half-open range of key tiles. If `parts > 1`, slice `part` of it; slices are balanced by
// computed tiles.
struct tile_range {
    std::int64_t head = 0, row_tile = 0;
    std::int64_t first = 0, last = 0;
    std::int64_t part = 0, parts = 1;
};

// The queries of one panel of a row tile.
struct panel_rows {
    std::int64_t number, first, queries;
};

// The destination of weighted values. With a `factor`, earlier values are multiplied by the factor
// before the addition. Else new values are added (`accumulates`) or replace the earlier values.
struct value_sums {
    float* values;
    const float* factor = nullptr;
    bool accumulates = false; // only if factor is null
};

// Reads the client's memory for one worker, one row tile at a time, and packs operands into the
// worker's scratch.
class tile_operands {
public:
    // `scratch` has room for plan.worker.floats.
    tile_operands(const tile_plan& plan, const attention_operands& addresses,
                  const attention_numbers& numbers, const tile_maps& maps, float* scratch);

    void bind(std::int64_t head, std::int64_t number);
    const row_tile& rows() const { return rows_; }
    key_tile tile(std::int64_t number) const {
        return classify_tile(plan_, numbers_, rows_, number);
    }
    // Returns the range without leading and trailing tiles that the rules mask in every row. If
    // `parts > 1`, returns slice `part` of the remaining tiles.
    tile_range kept_part(const tile_range& range) const;
    // The number of tiles in the range whose action is `compute`.
    std::int64_t count_computed(const tile_range& range) const;

    template <typename Visit>
    void for_each_panel(Visit visit) const {
        for (std::int64_t first = 0; first < rows_.rows; first += plan_.panel)
            visit(panel_rows{first / plan_.panel, rows_.first + first,
                             std::min(plan_.panel, rows_.rows - first)});
    }

    // The operand's matrix of this head, starting at `row`. In a paged cache, the matrix ends with
    // the row's page.
    strided_matrix matrix(const head_operand& operand, const void* base, std::int64_t row) const;
    // Return the tile's keys or values in the layout that the product kernels read. keys_of also
    // counts the tile as computed, and loads the row tile's queries if they are not loaded.
    strided_matrix keys_of(const key_tile& keys);
    strided_matrix values_of(const key_tile& keys) const;
    // The tile's values as f32.
    strided_matrix floats_of_values(const key_tile& keys) const;
    // Multiplies the panel's queries by the keys. Returns the scores with the steps and masks that
    // must still be applied.
    panel_scores multiply(const panel_rows& panel, const key_tile& keys, const strided_matrix& key,
                          float* scores);
    // Describes `scores` as the panel's scores of the tile, without steps and masks.
    panel_scores scores_of(const panel_rows& panel, const key_tile& keys, float* scores) const;
    // values = values * factor + weights * value. If the fill is -infinity, the panel's queries of
    // a document skip the keys that the rules mask for all these queries.
    void add_values(const panel_rows& panel, const key_tile& keys, const panel_scores& weights,
                    const strided_matrix& value, const value_sums& sums) const;
    bool may_count(const key_tile& keys, const float* maxima) {
        return has_weight(keys, numbers_.fill, bound_of_scores(keys), maxima, rows_.rows);
    }

    // The sink of the head that has this row.
    float sink(std::int64_t row) const;
    // Whether any score may be the fill.
    bool is_masked() const { return plan_.cond.column_count != 0 || addresses_.rules != nullptr; }

    float* part(std::int64_t offset) const { return scratch_ + offset; }
    std::int64_t computed_tiles() const { return computed_tiles_; }

private:
    tile_copy* records_of(const tile_copies& copies) const {
        return reinterpret_cast<tile_copy*>(part(copies.records));
    }
    // Returns the worker's copy of a tile; calls copy(dst) if there is no copy yet. At the first
    // read of a tile that the product kernels can read in place, returns `rows` and copies nothing.
    template <class Copy>
    strided_matrix kept_copy(const tile_copies& copies, const key_tile& keys,
                             const strided_matrix& rows, const Copy& copy) const {
        const std::int64_t slot = keys.number % copies.slots;
        tile_copy& kept = records_of(copies)[slot];
        const std::int64_t gathered =
            plan_.gathers ? position_[0] * plan_.key_tiles() + keys.number : 0;
        const bool is_known =
            kept.source == rows.first && kept.keys == keys.keys && kept.gathered == gathered;
        if (is_known && kept.rows.first != rows.first) return kept.rows;
        const bool may_read = !plan_.gathers && rows.type == elem_type::f32 &&
                              rows.column_bytes == bytes_of(elem_type::f32);
        kept = {rows.first, gathered, keys.keys,
                may_read && !is_known ? rows
                                      : copy(part(copies.first + slot * copies.tile_floats))};
        return kept.rows;
    }
    // Returns `rows` if tiles are not gathered. Else gathers the tile's rows from all pages into
    // dense `dst`, and zeros rows past the sequence's length.
    strided_matrix whole_tile(const head_operand& operand, const void* base, const key_tile& keys,
                              const strided_matrix& rows, float* dst) const;
    // Copies rows of a tile as dense f32.
    strided_matrix floats(const strided_matrix& rows, std::int64_t count, std::int64_t columns,
                          float* dst) const;
    // The first tile of a slice.
    std::int64_t first_of(const tile_range& all, std::int64_t part) const;
    float key_norm(const key_tile& keys) const;
    // Upper bound on a deferred tile's scores before bias; infinity if unknown.
    float bound_of_scores(const key_tile& keys);
    void load_queries();
    void load_slopes(std::int64_t head);
    // Prefetch distance in bytes: one tile; 0 for copies in scratch, at the end of a page, or if
    // memory does not limit the products.
    std::int64_t ahead_bytes_of(const key_tile& keys, const strided_matrix& tile) const {
        const std::int64_t page_keys = plan_.key.page_keys, next = keys.first + plan_.tile_keys;
        if (page_keys != 0 && next % page_keys == 0) return 0;
        const auto* const first = reinterpret_cast<const float*>(tile.first);
        const bool is_copy =
            !std::less<>()(first, scratch_) && std::less<>()(first, scratch_ + plan_.worker.floats);
        return plan_.waits_for_keys() && !is_copy ? plan_.tile_keys * tile.row_bytes : 0;
    }
    float* queries_of(const panel_rows& panel) const {
        return part(plan_.worker.queries) + panel.number * plan_.panel_query_floats();
    }
    // Whether the rules give keys of the tile weight 0.
    bool leaves_keys_out(const key_tile& keys) const {
        return keys.needs_spans && numbers_.fill_is_minus_infinity();
    }
    // Hull of the panel's unmasked keys, relative to the tile's first key; all keys, unless
    // leaves_keys_out.
    key_span kept_keys(const panel_rows& panel, const key_tile& keys) const;
    // Adds the values of the tile's keys in `run` for all queries.
    void add_run(const key_tile& keys, const panel_scores& weights, const strided_matrix& value,
                 const key_span& run, const value_sums& sums) const;
    // Adds each document's values to the queries of that document.
    void add_documents(const panel_rows& panel, const key_tile& keys, const panel_scores& weights,
                       const strided_matrix& value, const value_sums& sums) const;
    // Sets a key's half of the value pairs to 0, or back to the key's values.
    void write_half(const key_tile& keys, std::int64_t key, const strided_matrix& pairs,
                    bool is_kept) const;
    // Returns the mask for the panel's queries and the keys. Copies the mask's rows if folded heads
    // (see tile_plan) share these rows and the panel has queries of two heads.
    strided_matrix mask_of(const head_operand& mask, const void* base, const panel_rows& panel,
                           const key_span& keys) const;
    void add_cond(const panel_rows& panel, panel_scores& scores, std::int64_t first_key) const;
    void add_bias(const panel_rows& panel, panel_scores& scores, std::int64_t first_key) const;
    void add_slopes(const panel_rows& panel, panel_scores& scores, std::int64_t first_key) const;

    const tile_plan& plan_;
    const attention_operands& addresses_;
    const attention_numbers& numbers_;
    const tile_maps maps_;
    const attention_kernels& kernels_;
    float* scratch_;
    float query_factor_;
    score_steps steps_;
    shape_position position_;
    row_tile rows_;
    tile_spans spans_;
    std::int64_t length_ = 0; // keys before the sequence's padding
    bool has_queries_ = false;
    float query_norm_ = unknown_norm; // the largest of the rows
    std::int64_t computed_tiles_ = 0;
};

} // namespace maskwise
