#pragma once

#include "kernel/kernel_table.hpp"
#include "plan/tiling.hpp"
#include "plan/windows.hpp"

#include <vector>

namespace maskwise {

// How the select kernel reads or writes one operand, for tiles of one size.
struct operand_access {
    access_kind kind = access_kind::direct;
    column_class columns = column_class::unit;
    std::int64_t row_bytes = 0; // between rows of the select kernel's tile
    // The layout and the sizes of one pattern, which the buffer repeats. Unused if direct.
    pack_layout layout;
    std::int64_t pattern_bytes = 0;
    std::int64_t repeats = 1;
    std::int64_t buffer_bytes = 0;  // with slack; 0 if direct
    std::int64_t windows_reach = 0; // bytes from the tile's first element to the end of all windows
    // Offsets of the tile's cache lines, which are prefetched one tile ahead. Empty in plans that
    // do not pack. Includes a scattered dst, because a partial write loads its line first.
    std::vector<std::int32_t> lines;
    pack_fn pack = nullptr;
};

// Offsets, from the tile's first element, of one byte in each of the operand's cache lines. Empty
// if the hardware prefetchers suffice, or if there are too many lines. `packed_alone`: only one
// operand is gathered, scattered, packed by steps or transposed.
std::vector<std::int32_t> lines_of_tile(const loop_nest& nest, const tile_extents& extents,
                                        std::size_t operand, access_kind kind, bool packed_alone);

// Returns the byte offsets of one row's elements in the operand, in dst's order.
std::vector<std::int32_t> column_offsets(const loop_nest& nest, const tiling& tile,
                                         const tile_extents& extents, std::size_t operand);

// `extents` are those of the full tile or of a tail tile. Both have the same column class, but one
// may read an operand in place that the other packs.
operand_access make_access(const loop_nest& nest, const tiling& tile, const tile_extents& extents,
                           std::size_t operand, const kernel_table& kernels);

} // namespace maskwise
