#pragma once

#include "attention/tile_operands.hpp"

namespace maskwise {

// Computes row tiles, one at a time. The caller passes the memory of the running state, so that
// several workers can divide the key tiles of one row tile.
class tile_worker {
public:
    // `scratch` has room for plan.worker.floats.
    tile_worker(const tile_plan& plan, const attention_operands& addresses,
                const attention_numbers& numbers, const tile_maps& maps, float* scratch)
        : plan_(plan), addresses_(addresses), numbers_(numbers), kernels_(*plan.products),
          operands_(plan, addresses, numbers, maps, scratch) {}

    float* worker_state() const { return operands_.part(plan_.worker.state); }
    // The number of key tiles that `run` computes.
    std::int64_t count_computed(const tile_range& range);
    // Starts a new state and adds the tiles whose action is `compute`.
    void run(const tile_range& range, float* state);
    // Merges `other`, a state over disjoint keys of the row tile, into `state`.
    void merge(const tile_range& range, float* state, float* other);
    // Adds sinks and the deferred and filled tiles that have a weight.
    void add_rest(const tile_range& range, float* state);
    // Runs add_rest, then writes dst and statistics.
    void finish(const tile_range& range, float* state);
    // Computes the row tile in the order of separate operators.
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
    void retain_scores(const key_tile& keys);
    void fill_scores(const key_tile& keys);
    void retain_deferred(const tile_range& range, tile_action action, key_tile* tiles);
    void add_weighted_values(const tile_range& range, const key_tile* tiles);

    void write(float* state, bool is_normalized);
    void write_panel(const panel_rows& panel, const panel_state& state, bool is_normalized);
    void write_statistics(const panel_rows& panel, const panel_state& state) const;

    const tile_plan& plan_;
    const attention_operands& addresses_;
    const attention_numbers& numbers_;
    const attention_kernels& kernels_;
    tile_operands operands_;
};

} // namespace maskwise
