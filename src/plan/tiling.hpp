#pragma once

#include "plan/loop_nest.hpp"

namespace maskwise {

using tile_extents = std::array<std::int64_t, max_rank>; // elements of each loop

inline constexpr std::int64_t line_bytes = 64; // of the caches

// Upper bound on the number of loops with a tail tile.
inline constexpr int most_cut_loops = 3;

// Returns the chunk size that divides `extent` most evenly. At most max(most, step). A multiple of
// `step`, unless one chunk holds all of `extent`.
std::int64_t chunk_of(std::int64_t extent, std::int64_t most, std::int64_t step);

// Returns tile extents for short rows, or if an operand is strided along the innermost loop. The
// tile holds contiguous pieces of every operand. Pieces are as long as the tile's buffers allow, so
// that few other tiles fetch the same cache lines and pages. Requires a nest of rank 1 or more.
tile_extents choose_box(const loop_nest& nest);

// A tile is a box: some elements of each loop. The select kernel sees the tile as a matrix: loops
// [0, column_loops) are the columns, row_loop is the rows.
struct tiling {
    tile_extents extent{}; // elements of each loop in one tile: 1 for loops outside the tile
    int column_loops = 0;
    int row_loop = -1; // -1: one row
    // Whether dst is not contiguous along the columns. The box is then one row of a buffer, which
    // is scattered to dst.
    bool scatters = false;

    std::int64_t operator[](int i) const { return extent[static_cast<std::size_t>(i)]; }
    std::int64_t& operator[](int i) { return extent[static_cast<std::size_t>(i)]; }
};

std::int64_t elements_of(const tile_extents& extents);

tiling choose_tiling(const loop_nest& nest);

// Whether the operand's stride along the loop is one element or, except for dst, 0 (broadcast).
bool is_unit_or_zero(const loop_nest& nest, int loop, std::size_t operand);

} // namespace maskwise
