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
    // Where not direct: one pattern, and how often it stands in the buffer.
    pack_layout layout;
    std::int64_t pattern_bytes = 0;
    std::int64_t repeats = 1;
    std::int64_t buffer_bytes = 0;  // with slack; 0 where direct
    std::int64_t windows_reach = 0; // bytes from the tile's first element to the end of all windows
    // In plans that pack: offsets of the tile's cache lines, to ask for them one tile ahead. dst
    // has them where it is scattered: a line must be there before a part of it is written.
    std::vector<std::int32_t> lines;
    pack_fn pack = nullptr;
};

// Offsets from a tile's first element to a byte in each cache line of the operand in it; empty
// where the hardware's prefetchers will do. `packed_alone`: no other operand is gathered, scattered
// or transposed.
std::vector<std::int32_t> lines_of_tile(const loop_nest& nest, const tile_extents& extents,
                                        std::size_t operand, access_kind kind, bool packed_alone);

// Offsets in bytes of a row's elements in the operand, in dst's order.
std::vector<std::int32_t> column_offsets(const loop_nest& nest, const tiling& tile,
                                         const tile_extents& extents, std::size_t operand);

// `extents` are the tile's, or smaller in loops that it cuts. The access class is the same for all
// tiles. An operand that one tile packs may be read in place by another.
operand_access make_access(const loop_nest& nest, const tiling& tile, const tile_extents& extents,
                           std::size_t operand, const kernel_table& kernels);

} // namespace maskwise
