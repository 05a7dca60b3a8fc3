#include "plan/tiling.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace maskwise {
namespace {

// Shorter rows use the tiles of choose_box, because direct tiles would spend their time on row ends
// and on partial cache lines. The second bound is for rows of whole cache lines.
constexpr std::int64_t least_row_bytes = 1024;
constexpr std::int64_t least_whole_row_bytes = 256;
// Shorter contiguous pieces of dst are written from a buffer.
constexpr std::int64_t least_direct_bytes = 64;
// Upper bounds on a direct tile: large enough to hide the step to the next tile, and small enough
// to share work among threads.
constexpr std::int64_t direct_tile_elements = 16384;
constexpr std::int64_t direct_tile_bytes = 64 << 10;

// Whether rows of `elements` elements are long enough for direct tiles.
bool rows_are_long(const loop_nest& nest, std::int64_t elements) {
    const std::int64_t bytes = elements * nest.width_bytes[op_dst];
    const bool whole_lines =
        bytes % 64 == 0 && nest.rank > 1 && nest[1].stride_bytes[op_dst] % 64 == 0;
    return nest.rank == 1 || bytes >= (whole_lines ? least_whole_row_bytes : least_row_bytes);
}

bool columns_are_direct(const loop_nest& nest) {
    for (const std::size_t o : every_operand)
        if (!is_unit_or_zero(nest, 0, o)) return false;
    return true;
}

tile_extents direct_rows(const loop_nest& nest) {
    tile_extents extent;
    extent.fill(1);
    const std::int64_t most =
        std::min(direct_tile_elements, direct_tile_bytes / nest.width_bytes[op_dst]);
    extent[0] = chunk_of(nest[0].extent, most, 64);
    if (nest.rank > 1) extent[1] = chunk_of(nest[1].extent, most / extent[0], 1);
    return extent;
}

// The number of the box's innermost loops along which dst is contiguous.
int dense_loops(const loop_nest& nest, const tile_extents& extent) {
    std::int64_t dense_bytes = nest.width_bytes[op_dst];
    int d = 0;
    for (; d < nest.rank; ++d) {
        const std::int64_t in_tile = extent[static_cast<std::size_t>(d)];
        if (nest[d].stride_bytes[op_dst] != dense_bytes || in_tile == 1) break;
        dense_bytes *= in_tile;
    }
    return d;
}

void split_rows_and_columns(const loop_nest& nest, tiling& tile) {
    const auto bytes_of = [&](int loops) {
        std::int64_t bytes = nest.width_bytes[op_dst];
        for (int d = 0; d < loops; ++d) bytes *= tile[d];
        return bytes;
    };
    const auto loops_from = [&](int first) {
        int count = 0;
        for (int d = first; d < nest.rank; ++d) count += tile[d] > 1;
        return count;
    };
    const int dense = dense_loops(nest, tile.extent);
    // Long rows become one column loop, so operands that are broadcast from row to row are read in
    // place.
    const bool long_rows = dense > 0 && rows_are_long(nest, tile[0]) && loops_from(1) < 2;
    tile.column_loops = long_rows ? 1 : dense;
    const int beyond = loops_from(tile.column_loops);
    tile.scatters = beyond > 1 || (beyond == 1 && bytes_of(tile.column_loops) < least_direct_bytes);
    if (tile.scatters) tile.column_loops = nest.rank;
    for (int d = tile.column_loops; d < nest.rank; ++d)
        if (tile[d] > 1) tile.row_loop = d;
}

} // namespace

std::int64_t elements_of(const tile_extents& extents) {
    return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

bool is_unit_or_zero(const loop_nest& nest, int loop, std::size_t operand) {
    const std::int64_t stride = nest[loop].stride_bytes[operand];
    return stride == nest.width_bytes[operand] || (stride == 0 && operand != op_dst);
}

tiling choose_tiling(const loop_nest& nest) {
    tiling tile;
    tile.extent.fill(1);
    if (nest.rank == 0) return tile;
    const bool direct = columns_are_direct(nest) && rows_are_long(nest, nest[0].extent);
    tile.extent = direct ? direct_rows(nest) : choose_box(nest);
    split_rows_and_columns(nest, tile);
    return tile;
}

} // namespace maskwise
