#pragma once

#include "attention/attention_plan.hpp"

namespace maskwise {

// Key tiles [first, last) of a row tile of a head.
struct tile_range {
    std::int64_t head = 0, row_tile = 0;
    std::int64_t first = 0, last = 0;
};

// The tiles of cond and of bias; null where there is none.
struct tile_maps {
    const tile_mask *cond = nullptr, *bias = nullptr;
};

// Computes row tiles, one at a time, in scratch memory of its own. Its state after some keys can
// lie anywhere, so that several workers may share the keys of one row tile.
class tile_worker {
public:
    // `scratch` has room for plan.worker.floats.
    tile_worker(const attention_data& plan, const attention_operands& at,
                const attention_numbers& numbers, const tile_maps& maps, float* scratch)
        : plan_(plan), at_(at), numbers_(numbers), maps_(maps), kernels_(plan.kernels->attention),
          scratch_(scratch) {}

    float* own_state() const { return scratch_ + plan_.worker.state; }
    // Takes the keys into a new state.
    void run(const tile_range& range, float* state);
    // Joins the states of disjoint keys of a row tile.
    void merge(const tile_range& range, float* into, float* from);
    // Writes the rows of dst and the statistics.
    void finish(const tile_range& range, float* state);

private:
    // The queries of one panel of the row tile.
    struct panel_rows {
        std::int64_t number, first, queries;
    };
    // A key tile, and what of the mask still has to be looked at.
    struct key_tile {
        std::int64_t first, keys;
        bool is_crossed = false; // by the causal boundary
        bool is_selected = false;
        bool is_biased = false;
        bool is_far = false; // the bias masks all places that are kept
    };

    void bind(const tile_range& range);
    template <typename Visit>
    void for_each_panel(Visit visit);
    panel_state state_of(const panel_rows& panel, float* state) const;
    strided_matrix matrix(const head_operand& operand, const void* base, std::int64_t row) const;
    strided_matrix as_floats(const strided_matrix& rows, std::int64_t count, std::int64_t columns,
                             std::int64_t to) const;
    strided_matrix as_pairs(const strided_matrix& rows, std::int64_t count, std::int64_t columns,
                            std::int64_t to) const;
    strided_matrix keys_of_tile(const key_tile& keys) const;
    strided_matrix floats_of_values(const key_tile& keys) const;
    strided_matrix values_of_tile(const key_tile& keys) const;
    void load_queries(const panel_rows& panel) const;
    tile_mask look_up(std::int64_t number, key_tile& keys) const;
    void begin(float* state);
    void run_key_tile(const key_tile& keys, float* state);
    void run_panel(const panel_rows& panel, key_tile keys, const strided_matrix& key,
                   const strided_matrix& value, float* state);
    std::int64_t kept_keys(const panel_rows& panel, const key_tile& keys) const;
    void add_sides(const panel_rows& panel, const key_tile& keys, panel_scores& scores);
    void add_cond(const panel_rows& panel, const key_tile& keys, panel_scores& scores);
    void add_bias(const panel_rows& panel, const key_tile& keys, panel_scores& scores);
    bool matters(const float* maxima, std::int64_t queries, float score, float distance) const;
    void run_far(const tile_range& range, float* state);
    void run_masked(const tile_range& range, float* state);
    bool matters_with_bias(const key_tile& keys, float score, const float* state);
    void add_masked(const tile_range& range, float* sums);
    void merge_masked(const tile_range& range, std::int64_t masked_keys, float* state);
    void finish_panel(const panel_rows& panel, const panel_state& state);
    void write_statistics(const panel_rows& panel, const panel_state& state);

    const attention_data& plan_;
    const attention_operands& at_;
    const attention_numbers& numbers_;
    const tile_maps maps_;
    const attention_kernels& kernels_;
    float* scratch_;
    dims position_;
    tile_maps tiles_; // of this row tile
    std::int64_t first_row_ = 0, rows_ = 0;
};

} // namespace maskwise
