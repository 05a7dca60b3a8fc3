#pragma once

#include "attention/gradients_plan.hpp"
#include "attention/tile_worker.hpp"

namespace maskwise {

// Sums for the gradients of a group's keys and values, in the layout of gradients_plan::blocks.
struct gradient_sums {
    float *keys, *values;
};

// Computes gradients, one row tile at a time, and stores the gradients of key tiles.
class gradients_worker {
public:
    // `scratch` has room for plan.worker.floats floats.
    gradients_worker(const gradients_plan& plan, const attention_gradients_operands& addresses,
                     const attention_numbers& numbers, const tile_maps& maps, float* scratch);

    // Writes the queries' gradients, and adds the gradients of keys and values to `sums`. Returns
    // the row tile's part of the sink's gradient: -sum over rows of (sink's weight * delta), where
    // delta is dot(row of dst, its gradient). Returns 0 if there are no keys or no sinks_gradient.
    float run(std::int64_t head, std::int64_t row_tile, const gradient_sums& sums);
    // Adds the row tile's part to bias_gradient.
    void add_bias_gradients(std::int64_t head, std::int64_t row_tile);
    // Stores a key tile's gradients. `head` is any head of the group.
    void store_keys(std::int64_t head, std::int64_t key_tile, const gradient_sums& sums);

    std::int64_t computed_tiles() const { return operands_.computed_tiles(); }

private:
    // One panel and one key tile: scores and their gradients.
    struct panel_tile {
        const panel_rows& panel;
        const key_tile& keys;
        bool is_summed; // true: for the gradients of query, key and value; false: of the bias
        panel_scores scores;
        panel_gradients gradients;
    };

    void bind(std::int64_t head, std::int64_t row_tile);
    void load_statistics(std::int64_t head, std::int64_t row_tile);
    void compute_weights_again(std::int64_t head, std::int64_t row_tile);
    void load_rows();
    void load_dst(const panel_rows& panel);
    void load_blocks(const strided_matrix& rows, std::int64_t queries, std::int64_t columns,
                     float* blocks);
    void run_key_tiles(const gradient_sums* sums);
    void run_key_tile(const key_tile& keys, const gradient_sums* sums);
    bool compute_gradients(panel_tile& tile, const strided_matrix& value);
    void add_products(const panel_tile& tile, const strided_matrix& key, const gradient_sums& sums);
    void add_rows(const panel_tile& tile, const void* a, const float* blocks, std::int64_t columns,
                  float* sums) const;
    void add_query_gradients(const panel_tile& tile, const strided_matrix& key);
    void add_unmasked(const panel_tile& tile, const gradient_sums& sums);
    void add_bias(const panel_tile& tile);
    void store_queries();
    float sink_gradient();

    float* part(std::int64_t of_layout) const { return operands_.part(of_layout); }
    // Steps of a sum over queries: a step is one query, or a pair if in_pairs.
    std::int64_t query_steps(std::int64_t queries) const {
        return plan_.in_pairs ? (queries + 1) / 2 : queries;
    }
    std::int64_t block_floats() const { return query_steps(plan_.panel) * plan_.panel; }
    float* blocks_of(const panel_rows& panel, std::int64_t of_layout, std::int64_t columns) const {
        return part(of_layout) + panel.number * gradients_.blocks(columns) * block_floats();
    }
    float* query_gradients(const panel_rows& panel) const {
        return part(layout_.query_gradients) + panel.number * plan_.panel * plan_.depth;
    }
    float* dst_panel(const panel_rows& panel) const {
        return part(layout_.dst_panels) + panel.number * plan_.panel * padded_elems(plan_.columns);
    }

    const gradients_plan& gradients_;
    const tile_plan& plan_;
    const gradients_layout& layout_;
    const attention_gradients_operands& addresses_;
    const attention_numbers& numbers_;
    const attention_kernels& kernels_;
    tile_operands operands_;
    tile_worker attention_;
    strided_matrix key_pairs_; // of the current key tile
    bool is_loaded_ = false;   // load_rows() has run for the current row tile
};

} // namespace maskwise
