#pragma once

#include "attention/tile_operands.hpp"

namespace maskwise {

// Computes row tiles, one at a time. Its state after some keys can lie anywhere, so that several
// workers may share the keys of one row tile.
class tile_worker {
public:
    // As tile_operands.
    tile_worker(const tile_plan& plan, const attention_operands& at,
                const attention_numbers& numbers, const tile_maps& maps, float* scratch)
        : plan_(plan), at_(at), numbers_(numbers), kernels_(*plan.products),
          operands_(plan, at, numbers, maps, scratch) {}

    float* own_state() const { return operands_.part(plan_.worker.state); }
    // The key tiles that `run` computes.
    std::int64_t count_computed(const tile_range& range);
    // Takes the keys that have a weight for certain into a new state.
    void run(const tile_range& range, float* state);
    // Joins the states of disjoint keys of a row tile.
    void merge(const tile_range& range, float* into, float* from);
    // Takes what else has a weight in the state of all keys; writes the rows of dst and the
    // statistics.
    void finish(const tile_range& range, float* state);
    // All of it in the order of separate operators.
    void run_by_operators(const tile_range& range);

    std::int64_t computed_tiles() const { return operands_.computed_tiles(); }

private:
    void begin(float* state) const;
    panel_state state_of(const panel_rows& panel, float* state) const;
    void run_key_tile(const key_tile& keys, float* state);
    void run_deferred(const tile_range& range, tile_action action, float* state);
    void merge_filled(const tile_range& range, float* state);
    void merge_sinks(float* state, std::int64_t columns);
    panel_state same_values() const;
    std::int64_t add_filled(const tile_range& range, float* sums) const;

    float* scores_of(const panel_rows& panel, const key_tile& keys) const;
    void keep_scores(const key_tile& keys);
    void fill_scores(const key_tile& keys);
    void retain_deferred(const tile_range& range, tile_action action, key_tile* tiles);
    void weigh(const tile_range& range, const key_tile* tiles);

    void write(float* state, bool is_normalized);
    void write_panel(const panel_rows& panel, const panel_state& state, bool is_normalized);
    void write_statistics(const panel_rows& panel, const panel_state& state) const;

    const tile_plan& plan_;
    const attention_operands& at_;
    const attention_numbers& numbers_;
    const attention_kernels& kernels_;
    tile_operands operands_;
};

} // namespace maskwise
