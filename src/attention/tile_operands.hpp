#pragma once

#include "attention/tile_spans.hpp"

namespace maskwise {

inline constexpr float unknown_norm = -1;

// The maps of cond and of bias; of all row tiles, or of one. Null where there is none.
struct tile_maps {
    const tile_mask *cond = nullptr, *bias = nullptr;
    const float* highest_bias = nullptr;
    float* key_norms = nullptr; // the largest of each key tile of each head, or unknown_norm; null:
                                // scores have no bound
};

// Some queries of a head, with their part of the maps and their spans; null where every row keeps
// all keys.
struct row_tile {
    std::int64_t first = 0, rows = 0;
    tile_maps maps;
    const tile_spans* spans = nullptr;
    float best_bias = 0; // of all key tiles, where norms are known
};

key_tile classify_tile(const tile_plan& plan, const attention_numbers& numbers,
                       const row_tile& rows, std::int64_t number);

// Whether a deferred or filled tile has a weight in one of these rows; `maxima` are their largest
// scores so far. `bound` is an upper bound on products of queries and keys; infinity if unknown.
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

// Where products of values go: onto the values so far times a factor, or without one onto the
// values themselves, or nothing.
struct value_sums {
    float* values;
    const float* factor = nullptr;
    bool accumulates = false; // without a factor
};

// What a worker reads of the client's memory, one row tile at a time, and brings into scratch
// memory of its own.
class tile_operands {
public:
    // `scratch` has room for plan.worker.floats.
    tile_operands(const tile_plan& plan, const attention_operands& at,
                  const attention_numbers& numbers, const tile_maps& maps, float* scratch);

    void bind(std::int64_t head, std::int64_t number);
    const row_tile& rows() const { return rows_; }
    key_tile tile(std::int64_t number) const {
        return classify_tile(plan_, numbers_, rows_, number);
    }
    // Without the tiles at its ends of which no row keeps a key.
    tile_range kept_part(const tile_range& range) const;
    // Of the tiles that are computed for certain.
    std::int64_t count_computed(const tile_range& range) const;

    template <typename Visit>
    void for_each_panel(Visit visit) const {
        for (std::int64_t first = 0; first < rows_.rows; first += plan_.panel)
            visit(panel_rows{first / plan_.panel, rows_.first + first,
                             std::min(plan_.panel, rows_.rows - first)});
    }

    // The operand's matrix of this head, from a row on.
    strided_matrix matrix(const head_operand& operand, const void* base, std::int64_t row) const;
    // As products take them. Keys count as computed.
    strided_matrix keys_of(const key_tile& keys);
    strided_matrix values_of(const key_tile& keys) const;
    strided_matrix floats_of_values(const key_tile& keys) const;
    // Scores of the panel's queries: their products with keys, and what is still to be done.
    panel_scores multiply(const panel_rows& panel, const key_tile& keys, const strided_matrix& key,
                          float* scores);
    // The scores, and what the mask says of them.
    panel_scores scores_of(const panel_rows& panel, const key_tile& keys, float* scores) const;
    // values = values * factor + weights * value; without a factor the sum goes on. Values that no
    // query of the panel keeps, or none of its document, are not multiplied.
    void add_values(const panel_rows& panel, const key_tile& keys, const panel_scores& weights,
                    const strided_matrix& value, const value_sums& to) const;
    // Whether a deferred or filled tile has a weight in a row; `maxima` are the rows' largest
    // scores so far.
    bool may_count(const key_tile& keys, const float* maxima) {
        return has_weight(keys, numbers_.fill, bound_of_scores(keys), maxima, rows_.rows);
    }

    // Of the head that has this row.
    float sink(std::int64_t row) const;
    // Whether a tile may have the fill.
    bool is_masked() const {
        return plan_.cond.column_count != 0 || numbers_.causal_offset || at_.rules != nullptr;
    }

    float* part(std::int64_t of_layout) const { return scratch_ + of_layout; }
    std::int64_t computed_tiles() const { return computed_tiles_; }

private:
    // Rows of a tile as dense f32.
    strided_matrix floats(const strided_matrix& rows, std::int64_t count, std::int64_t columns,
                          std::int64_t to) const;
    // Where a part begins.
    std::int64_t first_of(const tile_range& all, std::int64_t part) const;
    float key_norm(const key_tile& keys) const;
    // Upper bound on a deferred tile's scores before bias; infinity if unknown.
    float bound_of_scores(const key_tile& keys);
    void load_queries();
    // How far ahead memory is asked for: by a tile, but not of copies in scratch memory.
    std::int64_t ahead_bytes_of(const strided_matrix& tile) const {
        const auto* const at = reinterpret_cast<const float*>(tile.first);
        const bool is_own =
            !std::less<>()(at, scratch_) && std::less<>()(at, scratch_ + plan_.worker.floats);
        return plan_.waits_for_keys() && !is_own ? plan_.tile_keys * tile.row_bytes : 0;
    }
    float* queries_of(const panel_rows& panel) const {
        return part(plan_.worker.queries) + panel.number * plan_.panel_query_floats();
    }
    // Whether keys of the tile outside the queries' spans have no weight.
    bool leaves_keys_out(const key_tile& keys) const {
        return keys.needs_spans && numbers_.fill_is_minus_infinity();
    }
    // The keys of the tile that queries of the panel keep, counted from the tile's first.
    key_span kept_keys(const panel_rows& panel, const key_tile& keys) const;
    // Adds the values of a run of the tile's keys for all queries.
    void add_run(const key_tile& keys, const panel_scores& weights, const strided_matrix& value,
                 const key_span& run, const value_sums& to) const;
    // Each document's values for its own queries.
    void add_documents(const panel_rows& panel, const key_tile& keys, const panel_scores& weights,
                       const strided_matrix& value, const value_sums& to) const;
    // A key's half of the pairs of values becomes 0, or its values again.
    void write_half(const key_tile& keys, std::int64_t key, const strided_matrix& pairs,
                    bool is_kept) const;
    // The mask of the panel's queries and of keys from there on; rows that heads share are copied
    // for each head.
    strided_matrix mask_of(const head_operand& mask, const void* base, const panel_rows& panel,
                           const key_span& keys) const;
    void add_cond(const panel_rows& panel, panel_scores& scores, std::int64_t first_key) const;
    void add_bias(const panel_rows& panel, panel_scores& scores, std::int64_t first_key) const;

    const tile_plan& plan_;
    const attention_operands& at_;
    const attention_numbers& numbers_;
    const tile_maps maps_;
    const attention_kernels& kernels_;
    float* scratch_;
    float query_factor_;
    score_steps steps_;
    shape_position position_;
    row_tile rows_;
    tile_spans spans_;
    bool has_queries_ = false;
    float query_norm_ = unknown_norm; // the largest of the rows
    std::int64_t computed_tiles_ = 0;
};

} // namespace maskwise
