#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maskwise {

// The contract of Select kernels. A kernel computes one tile, a matrix of rows x columns elements.
// Kernels take no lock, own no memory and may run on any number of threads at once.

// An operand's stride along the columns, in elements. zero: one element per row.
enum class column_class : std::uint8_t { unit, zero };

// stream: stores of full cache lines bypass the caches, unless elements straddle lines. The caller
// must call finish_streaming() before another thread reads dst.
enum class store_policy : std::uint8_t { plain, stream };

// dst[r][c] = cond[r][c] != 0 ? src_0[r][c] : src_1[r][c]. Row strides are in bytes and may be 0.
// Elements are opaque bits at any alignment. dst may be src_0 or src_1 if their row strides are
// equal. A kernel reads and writes only elements of the tile.
struct select_tile {
    const std::byte* cond;
    const std::byte* src_0;
    const std::byte* src_1;
    std::byte* dst;
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t cond_row_bytes;
    std::int64_t src_0_row_bytes;
    std::int64_t src_1_row_bytes;
    std::int64_t dst_row_bytes;
};
using select_fn = void (*)(const select_tile&);

// Computes the same tile from two scattered sources, reading only the selected elements. Element c
// of a row is offsets[2 * c] bytes after the row's start in src_1, and offsets[2 * c + 1] bytes
// after the row's start in src_0.
using pick_fn = void (*)(const select_tile&, const std::int32_t* offsets);

// Fills registers of 16 bytes from runs of a few bytes. Register r combines `count` windows. Window
// w is the 16 bytes at offsets[r * count + w]. The 16 numbers at shuffles[(r * count + w) * 16]
// pick bytes of window w; 0x80 picks none. If a group of pack_layout is not a multiple of 16
// bytes, the last register overlaps the register before it.
struct byte_windows {
    std::int64_t count = 0; // 0: copying the runs one by one is faster
    std::vector<std::int32_t> offsets;
    std::vector<std::uint8_t> shuffles;
};

// Upper bound on the items that the transpose kernel reads at once, reached by one-byte elements in
// registers of 32 bytes.
inline constexpr std::int64_t max_block_items = 32;

// Maps a strided operand to a buffer, as `groups` groups of `items` items. Item i of group g is at
// strided + g * group_bytes + offsets[i]. In the buffer, items are contiguous and groups are
// buffer_group_bytes apart.
//   gather:    copies items of `item_bytes` bytes to the buffer. With may_use_windows, a kernel
//              may read windows, which include bytes between items.
//   scatter:   copies items from the buffer.
//   step:      a gather of elements at a distance of offsets[1] bytes, which may be negative. Reads
//              no other offset.
//   splat:     an item is one element, repeated to `item_bytes` bytes. May write up to
//              pack_slack_bytes past the last item.
//   transpose: an item is one element. Groups are adjacent elements, so group_bytes is the width
//              of an element. In the buffer, group g begins at group_places[g];
//              buffer_group_bytes is 0 if groups are not evenly spaced. If groups are contiguous,
//              may write up to pack_slack_bytes past the last group.
// The kernel moves `blocks` blocks of `groups` groups each. Block b is offset by block_offsets[b].
// In the buffer, block b is offset by b * groups * buffer_group_bytes, or for transpose by
// block_places[b].
struct pack_layout {
    std::int64_t items = 1;
    std::int64_t groups = 1;
    std::int64_t blocks = 1;
    std::int64_t item_bytes = 0;
    std::int64_t group_bytes = 0;
    std::int64_t buffer_group_bytes = 0;
    std::vector<std::int32_t> offsets;
    std::vector<std::int32_t> block_offsets;
    std::vector<std::int32_t> group_places;
    std::vector<std::int32_t> block_places;
    std::int64_t max_items = max_block_items; // transpose: cache lines of more items exceed L1
    bool even_items = false;                  // transpose: items are evenly spaced
    byte_windows windows;                     // gather
};

// Cache lines to prefetch, as offsets from `base`. Any address is safe.
struct lines_ahead {
    const std::byte* base = nullptr;
    std::span<const std::int32_t> offsets;
};

struct pack_tile {
    std::byte* strided; // read only, except by scatter
    std::byte* buffer;  // written only, except by scatter
    const pack_layout& layout;
    bool may_use_windows;
    // Prefetched in small portions: all at once would delay the tile's own loads.
    lines_ahead ahead;
};
using pack_fn = void (*)(const pack_tile&);

// How an operand reaches the select kernel. direct: read in place. repeat: repeated copies of a
// contiguous pattern. The other kinds name the kernel that packs the operand.
enum class access_kind : std::uint8_t { direct, repeat, gather, scatter, step, splat, transpose };

inline constexpr std::int64_t pack_slack_bytes = 64;
inline constexpr std::int64_t window_bytes = 16;
inline constexpr std::int64_t max_windows = 8;

} // namespace maskwise
