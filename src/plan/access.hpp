#pragma once

#include "kernel/kernel_table.hpp"
#include "plan/tiling.hpp"
#include "plan/windows.hpp"

#include <vector>

namespace maskwise {

// How one operand reaches the kernel in tiles of one size.
struct operand_access {
    access_kind kind = access_kind::direct;
    column_class columns = column_class::unit;
    std::int64_t row_bytes = 0; // between rows, as the select kernel sees it
    // Only if not direct: one pattern, and how often the buffer repeats it.
    pack_layout layout;
    std::int64_t pattern_bytes = 0;
    std::int64_t repeats = 1;
    std::int64_t buffer_bytes = 0;  // with slack; 0 if direct
    std::int64_t windows_reach = 0; // bytes from the tile's first element to the end of all windows
    // In plans that pack: offsets of the tile's cache lines, which are prefetched one tile ahead. A
    // scattered dst has them because a line is loaded before a part of it is written.
    std::vector<std::int32_t> lines;
    pack_fn pack = nullptr;
};

// Offsets from the tile's first element to one byte in each cache line of the operand; empty if the
// hardware's prefetchers suffice. `packed_alone`: no other operand is gathered, scattered or
// transposed.
std::vector<std::int32_t> lines_of_tile(const loop_nest& nest, const tile_extents& extents,
                                        std::size_t operand, access_kind kind, bool packed_alone);

// Offsets in bytes of a row's elements in the operand, in dst's order.
std::vector<std::int32_t> column_offsets(const loop_nest& nest, const tiling& tile,
                                         const tile_extents& extents, std::size_t operand);

// `extents` are the tile's, or smaller in loops that the tile cuts. The access class is the same
// for all tiles. One tile may read an operand in place that another packs.
operand_access make_access(const loop_nest& nest, const tiling& tile, const tile_extents& extents,
                           std::size_t operand, const kernel_table& kernels);

} // namespace maskwise
