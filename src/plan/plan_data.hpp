#pragma once

#include "plan/access.hpp"
#include "plan/select_plan.hpp"
#include "plan/tiling.hpp"

namespace maskwise {

// What the run-time scratch of one thread may hold: it lies on the stack.
inline constexpr std::int64_t max_scratch_bytes = 80 << 10;

// One loop over tiles.
struct grid_loop {
    std::int64_t count = 1;  // tiles
    std::int64_t extent = 1; // elements
    std::int64_t tile = 1;   // elements of a tile; the last tile has the rest
    per_operand<std::int64_t> step_bytes{};
};

// A compiled Select. Everything is decided here; src/exec walks the grid and calls the kernels. A
// plan of strings is its nest; the rest is empty.
class select_plan {
public:
    select_desc desc;
    loop_nest nest;
    isa target = isa::scalar;
    tiling tile;

    // Loops over tiles, outermost first, those of one tile left out. tiles is their product, 0
    // where dst is empty.
    int grid_rank = 0;
    std::array<grid_loop, max_rank> grid{};
    std::int64_t tiles = 0;

    // A whole tile: rows, elements of the column loop, and columns for each of those. Where a grid
    // loop cuts rows or columns its last tile is smaller (index into grid, or -1).
    std::int64_t rows = 1;
    std::int64_t chunk = 1;
    std::int64_t columns_per_chunk = 1;
    int row_grid = -1;
    int column_grid = -1;

    per_operand<operand_access> access;
    per_operand<std::int64_t> buffer_offset{};
    bool packs = false;            // some operand is not direct
    bool cond_is_constant = false; // one cond byte decides a whole tile

    select_key key{};
    select_fn run_plain = nullptr; // key with plain stores: for dst that is read as a source
    select_fn run = nullptr;
    std::int64_t moved_bytes = 0; // dst and what is read of the sources, each byte once
};

// Builds a plan without looking at the cache or the environment.
std::shared_ptr<const select_plan> build_plan(const select_desc& desc, isa target,
                                              std::int64_t stream_from_bytes);

} // namespace maskwise
