#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// The next unit of work: one slice of a row tile's key tiles. Slices differ by at most one computed
// tile.
struct work_item {
    std::int64_t row_tile = 0; // of all heads
    std::int64_t part = 0, parts = 1;
    std::int64_t state = 0; // index of this slice's partial state; used only if parts > 1
};

// How many key tiles the row tiles compute; heads that follow one another may be alike.
struct row_costs {
    std::int64_t heads = 0, row_tiles = 0; // of a head
    std::int64_t heads_alike = 1;
    const std::int64_t* tiles = nullptr; // of the row tiles of one head of those that are alike

    std::int64_t unlike() const { return heads / heads_alike * row_tiles; }
    const std::int64_t* of_head(std::int64_t head) const {
        return tiles + head / heads_alike * row_tiles;
    }
};

// Work in the order in which workers take it.
struct work_list {
    work_item* items = nullptr;
    work_item* shared = nullptr; // the first parts of row tiles that have several
    std::int64_t count = 0, shared_count = 0, states = 0;
};

// How an execution is divided, and its scratch: the maps of cond and bias, costs and the list of
// work, the workers, and the states of row tiles of which the keys are shared out.
struct division {
    int threads = 1, workers = 1;
    bool by_cost = false; // otherwise each row tile is an item
    std::int64_t row_tiles = 0;
    std::int64_t most_items = 0, most_states = 0; // by cost
    std::int64_t highest_bytes = 0, norm_bytes = 0, map_bytes = 0, cost_bytes = 0, list_bytes = 0,
                 worker_bytes = 0, state_bytes = 0;

    // With what aligning takes; where 64 bits do not hold them, a number that no machine has.
    std::int64_t bytes() const;
};

division divide(const tile_plan& plan, int threads);

// How many heads that follow one another have the same mask.
std::int64_t heads_alike(const tile_plan& plan, bool has_rules);

// The number of slices in which the key tiles of a map's row tile are classified.
std::int64_t parts_of_map(const mask_layout& layout, int workers);

// Fills in the list, which has room for what `divide` says. Items cost about the same, and heavier
// ones come first. False, and no list, if every row tile is a light item: then the order does not
// matter.
bool list_work(const row_costs& costs, int workers, work_list& list);

} // namespace maskwise
