#pragma once

#include "attention/tile_plan.hpp"
#include "maskwise/attention_gradients.hpp"

namespace maskwise {

// Offsets, in floats, in a worker's scratch. The gradients' parts follow those of
// tile_plan::worker.
struct gradients_layout {
    std::int64_t dst_panels = 0, query_blocks = 0, dst_blocks = 0, dst = 0, dst_gradient = 0,
                 products = 0, weight_rows = 0, gradient_rows = 0, key_pairs = 0,
                 query_gradients = 0, log_sums = 0, maxima = 0, deltas = 0, rows = 0, floats = 0;
};

struct gradients_plan {
    attention_gradients_desc desc; // completed
    std::shared_ptr<const tile_plan> attention;
    head_operand dst_gradient, query_gradient, key_gradient, value_gradient, bias_gradient,
        sinks_gradient;
    std::int64_t group = 1; // number of consecutive heads that share keys and values
    // The number of items per group. A group's row tiles are divided among its items. Each item has
    // separate sums for the gradients of keys and values. Neither this number nor the results
    // depend on the number of threads.
    std::int64_t parts = 1;
    gradients_layout worker;
    mutable scratch_pool<scratch_memory> scratch;

    std::int64_t groups() const { return attention->heads / group; }
    std::int64_t items() const { return groups() * parts; }
    // The number of blocks of `panel` columns for `columns` columns. Sums of a gradient matrix have
    // the layout {key tile, block, key, column of the block}.
    std::int64_t blocks(std::int64_t columns) const {
        return (columns + attention->panel - 1) / attention->panel;
    }
    std::int64_t tile_floats(std::int64_t columns) const {
        return blocks(columns) * attention->tile_keys * attention->panel;
    }
    // Floats of an item's sums for the gradients of keys and values.
    std::int64_t sums_floats() const {
        return attention->key_tiles() *
               (tile_floats(attention->depth) + tile_floats(attention->columns));
    }
};

// Makes a plan with these kernels; assumes that the system allows AMX. Throws as
// compile(attention_gradients_desc) does.
std::shared_ptr<const gradients_plan> make_gradients_plan(const attention_gradients_desc& desc,
                                                          const kernel_table& kernels);
// Makes a plan with the kernels of `target`, or of AVX-512 if the system denies AMX.
std::shared_ptr<const gradients_plan> make_gradients_plan(const attention_gradients_desc& desc,
                                                          isa target);

} // namespace maskwise
