#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// A unit of work: one slice of a row tile's key tiles. Slices differ by at most one computed tile.
struct work_item {
    std::int64_t row_tile = 0; // head * row tiles per head + row tile of the head
    std::int64_t part = 0, parts = 1;
    std::int64_t state = 0; // index of this slice's partial state; used only if parts > 1
};

// The number of key tiles that each row tile computes. `heads_alike` consecutive heads share one
// array of `row_tiles` counts.
struct row_costs {
    std::int64_t heads = 0, row_tiles = 0; // row tiles per head
    std::int64_t heads_alike = 1;
    const std::int64_t* tiles = nullptr;

    std::int64_t unlike() const { return heads / heads_alike * row_tiles; }
    const std::int64_t* of_head(std::int64_t head) const {
        return tiles + head / heads_alike * row_tiles;
    }
};

// Work in execution order.
struct work_list {
    work_item* items = nullptr;
    work_item* shared = nullptr; // the first slice of each row tile that is split
    std::int64_t count = 0, shared_count = 0, states = 0;
};

// The division of an execution's work. Scratch holds, in this order: the largest biases, key norms,
// the maps of cond and bias, costs, the work list, the workers' scratch, and the states of split
// row tiles.
struct division {
    int threads = 1, workers = 1;
    bool by_cost = false; // else each row tile is one item
    std::int64_t row_tiles = 0;
    std::int64_t most_items = 0, most_states = 0; // only if by_cost
    std::int64_t highest_bytes = 0, norm_bytes = 0, map_bytes = 0, cost_bytes = 0, list_bytes = 0,
                 worker_bytes = 0, state_bytes = 0;

    // Bytes of scratch, including alignment. Saturates on overflow.
    std::int64_t bytes() const;
};

division divide(const tile_plan& plan, int threads);

// Returns the number of consecutive heads that share cond, bias and rules.
std::int64_t heads_alike(const tile_plan& plan, const mask_rules* rules);

// Returns the number of slices per row tile for the parallel computation of a mask's map.
std::int64_t parts_of_map(const mask_layout& layout, int workers);

// Fills in the list, which has room for the items and states that `divide` counted. Splits row
// tiles that exceed an upper bound on an item's key tiles, and puts heavy items first. If no row
// tile exceeds half of this bound, the order does not matter: returns false and leaves `list`
// unchanged.
bool list_work(const row_costs& costs, int workers, work_list& list);

} // namespace maskwise
