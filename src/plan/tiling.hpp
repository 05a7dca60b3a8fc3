#pragma once

#include "plan/box.hpp"

namespace maskwise {

// A tile is a box: some elements of each loop. To the select kernel it is a matrix: its columns are
// the loops [0, column_loops) of the box, its rows one more loop.
struct tiling {
    tile_extents extent{}; // elements of each loop in one tile: 1 for loops outside the tile
    int column_loops = 0;
    int row_loop = -1; // -1: one row
    // dst does not lie in one piece along the columns: the box is one row in a buffer, and
    // scattered from there.
    bool scatters = false;

    std::int64_t operator[](int i) const { return extent[static_cast<std::size_t>(i)]; }
    std::int64_t& operator[](int i) { return extent[static_cast<std::size_t>(i)]; }
};

// Elements of a box.
std::int64_t elements_of(const tile_extents& extents);

// Chooses the tile; a pure function of the nest.
tiling choose_tiling(const loop_nest& nest);

// True where the operand steps by its own width, or not at all, along the loop.
bool is_unit_or_zero(const loop_nest& nest, int loop, std::size_t operand);

} // namespace maskwise
