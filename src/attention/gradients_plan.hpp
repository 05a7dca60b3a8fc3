#pragma once

#include "attention/tile_plan.hpp"
#include "maskwise/attention_gradients.hpp"

namespace maskwise {

// Offsets, in floats, of the parts of a worker's scratch for gradients. These parts follow the
// parts of tile_plan::worker.
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
    std::int64_t group = 1; // heads that share keys and values: one unit of work
    // The number of items among which each group's row tiles are divided. Each item has separate
    // sums for the gradients of keys and values. The number of threads affects neither this number
    // nor the results.
    std::int64_t parts = 1;
    gradients_layout worker;
    mutable scratch_pool<scratch_memory> scratch;

    std::int64_t groups() const { return attention->heads / group; }
    std::int64_t items() const { return groups() * parts; }
    // The number of blocks into which `columns` columns are divided; a block has `panel` columns.
    // Sums for a matrix of gradients have the layout {key tile, block, key, column of the block}.
    std::int64_t blocks(std::int64_t columns) const {
        return (columns + attention->panel - 1) / attention->panel;
    }
    std::int64_t tile_floats(std::int64_t columns) const {
        return blocks(columns) * attention->tile_keys * attention->panel;
    }
    // The size of an item's sums for the gradients of keys and values.
    std::int64_t sums_floats() const {
        return attention->key_tiles() *
               (tile_floats(attention->depth) + tile_floats(attention->columns));
    }
};

// A plan with these kernels, which may use AMX tiles. Throws as compile(attention_gradients_desc)
// does.
std::shared_ptr<const gradients_plan> make_gradients_plan(const attention_gradients_desc& desc,
                                                          const kernel_table& kernels);
// A plan with the kernels of `target`, without AMX tiles if the system refuses them.
std::shared_ptr<const gradients_plan> make_gradients_plan(const attention_gradients_desc& desc,
                                                          isa target);

} // namespace maskwise
