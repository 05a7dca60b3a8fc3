#include "plan/tiling.hpp"

#include <algorithm>
#include <limits>

namespace maskwise {
namespace {

// Shorter rows spend their time on row ends, and their stores past the caches on partial cache
// lines; such nests are flattened. Rows of whole cache lines have no ends to speak of.
constexpr std::int64_t least_row_bytes = 1024;
constexpr std::int64_t least_whole_row_bytes = 256;
// Rows that have to be packed along a loop far outside are worth it from here on.
constexpr std::int64_t least_packed_columns = 16;
// A direct tile: enough to hide the step from tile to tile, few enough to deal out to threads.
constexpr std::int64_t direct_tile_elements = 16384;
// A packed tile's buffers and offsets stay in L1 together.
constexpr std::int64_t packed_buffer_bytes = 16384;
// Rows of a packed tile: enough to use up the cache lines of a source that runs along the rows.
constexpr std::int64_t packed_rows = 64;
constexpr std::int64_t flat_buffer_bytes = 8192;
constexpr std::int64_t flat_tile_elements = 4096;
// Offsets inside a tile are 32 bits.
constexpr std::int64_t largest_offset = std::numeric_limits<std::int32_t>::max();

// `extent` in equal chunks of at most `most` (or `step`), whole multiples of `step` where it is
// cut.
std::int64_t chunk_of(std::int64_t extent, std::int64_t most, std::int64_t step) {
    most = std::max(most / step * step, step);
    if (extent <= most) return extent;
    const std::int64_t count = (extent + most - 1) / most;
    const std::int64_t even = (extent + count - 1) / count;
    return std::min(extent, (even + step - 1) / step * step);
}

std::int64_t largest_stride(const loop_dim& loop) {
    std::int64_t largest = 0;
    for (const std::int64_t stride : loop.stride_bytes)
        largest = std::max(largest, stride < 0 ? -stride : stride);
    return largest;
}

// How many elements of the loop a packed tile may hold so that offsets fit.
std::int64_t offset_limit(const loop_dim& loop, std::int64_t room) {
    const std::int64_t stride = largest_stride(loop);
    return stride == 0 ? loop.extent : std::max<std::int64_t>(1, room / stride);
}

bool rows_are_long(const loop_nest& nest) {
    const std::int64_t bytes = nest[0].extent * nest.width_bytes[op_dst];
    const bool whole_lines =
        bytes % 64 == 0 && nest.rank > 1 && nest[1].stride_bytes[op_dst] % 64 == 0;
    return bytes >= (whole_lines ? least_whole_row_bytes : least_row_bytes);
}

bool columns_are_direct(const loop_nest& nest) {
    for (std::size_t o = 0; o < operand_count; ++o)
        if (!is_unit_or_zero(nest, 0, o)) return false;
    return true;
}

tiling empty_tile(tile_form form) {
    tiling tile;
    tile.form = form;
    tile.extent.fill(1);
    return tile;
}

tiling tile_direct_rows(const loop_nest& nest) {
    tiling tile = empty_tile(tile_form::rows);
    tile[0] = chunk_of(nest[0].extent, direct_tile_elements, 64);
    if (nest.rank == 1) return tile;
    tile.row_loop = 1;
    tile[1] = chunk_of(nest[1].extent, direct_tile_elements / tile[0], 1);
    return tile;
}

// The loop along which a source that is scattered in the columns is contiguous; else the next one.
// Short ones pay where the columns follow each other right behind them: pixels.
int choose_row_loop(const loop_nest& nest) {
    for (int d = 1; d < nest.rank; ++d)
        for (std::size_t o = 0; o < operand_count; ++o) {
            if (is_unit_or_zero(nest, 0, o) || nest[d].stride_bytes[o] != nest.width_bytes[o])
                continue;
            const std::int64_t run_bytes = nest[d].extent * nest.width_bytes[o];
            if (nest[d].extent >= 8 || nest[0].stride_bytes[o] == run_bytes) return d;
        }
    return nest.rank > 1 ? 1 : -1;
}

tiling tile_packed_rows(const loop_nest& nest) {
    tiling tile = empty_tile(tile_form::rows);
    const std::int64_t elements = packed_buffer_bytes / nest.width_bytes[op_dst];
    tile.row_loop = choose_row_loop(nest);
    const std::int64_t row_extent = tile.row_loop < 0 ? 1 : nest[tile.row_loop].extent;
    const std::int64_t columns = elements / std::min(row_extent, packed_rows);
    const std::int64_t most = std::min(columns, std::int64_t{1024});
    tile[0] = chunk_of(nest[0].extent, std::min(most, offset_limit(nest[0], largest_offset)), 1);
    if (tile.row_loop < 0) return tile;
    const std::int64_t rows = std::clamp<std::int64_t>(elements / tile[0], 1, 2 * packed_rows);
    tile[tile.row_loop] = chunk_of(row_extent, rows, 16);
    return tile;
}

tiling tile_flat(const loop_nest& nest) {
    tiling tile = empty_tile(tile_form::flat);
    std::int64_t room = std::min(flat_tile_elements, flat_buffer_bytes / nest.width_bytes[op_dst]);
    std::int64_t reach = largest_offset;
    for (int d = 0; d < nest.rank; ++d) {
        const std::int64_t most = std::min(room, offset_limit(nest[d], reach));
        tile.column_loop = d;
        tile[d] = chunk_of(nest[d].extent, most, 1);
        if (tile[d] < nest[d].extent || room / tile[d] < 2) break;
        room /= tile[d];
        reach -= (tile[d] - 1) * largest_stride(nest[d]);
    }
    return tile;
}

// True where the flat tile holds whole cache lines of every operand that is scattered in its
// columns.
bool reaches_cache_lines(const loop_nest& nest, const tiling& flat) {
    for (std::size_t o = 0; o < operand_count; ++o) {
        if (is_unit_or_zero(nest, 0, o)) continue;
        for (int d = flat.column_loop; d < nest.rank; ++d) {
            const bool whole = flat[d] * nest.width_bytes[o] >= 64 || flat[d] == nest[d].extent;
            if (nest[d].stride_bytes[o] == nest.width_bytes[o] && !whole) return false;
        }
    }
    return true;
}

} // namespace

bool is_unit_or_zero(const loop_nest& nest, int loop, std::size_t operand) {
    const std::int64_t stride = nest[loop].stride_bytes[operand];
    return stride == nest.width_bytes[operand] || (stride == 0 && operand != op_dst);
}

tiling choose_tiling(const loop_nest& nest) {
    if (nest.rank == 0) {
        tiling tile = empty_tile(tile_form::rows);
        tile.column_loop = -1;
        return tile;
    }
    const bool long_rows = rows_are_long(nest);
    if (columns_are_direct(nest) && (long_rows || nest.rank == 1)) return tile_direct_rows(nest);
    if (long_rows || nest.rank == 1) return tile_packed_rows(nest);
    const tiling flat = tile_flat(nest);
    const bool reaches = reaches_cache_lines(nest, flat);
    return reaches || nest[0].extent < least_packed_columns ? flat : tile_packed_rows(nest);
}

} // namespace maskwise
