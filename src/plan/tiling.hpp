#pragma once

#include "plan/loop_nest.hpp"

namespace maskwise {

// rows: a tile is a chunk of the innermost loop (columns) times a chunk of another loop (rows).
// flat: a tile is all of the innermost loops and a chunk of the next one, walked as one long row.
enum class tile_form : std::uint8_t { rows, flat };

struct tiling {
    tile_form form = tile_form::rows;
    int column_loop = 0; // the loop whose chunk is a tile's width; -1 where the nest is one element
    int row_loop = -1;   // -1: a tile has one row
    // Elements of each loop in one tile: 1 for loops outside the tile.
    std::array<std::int64_t, max_rank> extent{};

    std::int64_t operator[](int i) const { return extent[static_cast<std::size_t>(i)]; }
    std::int64_t& operator[](int i) { return extent[static_cast<std::size_t>(i)]; }
};

// Chooses form and size of the tiles; a pure function of the nest.
tiling choose_tiling(const loop_nest& nest);

// True where the operand steps by its own width, or not at all, along the loop.
bool is_unit_or_zero(const loop_nest& nest, int loop, std::size_t operand);

} // namespace maskwise
