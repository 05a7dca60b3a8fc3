#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maskwise {

// What a kernel may rely on and must keep. A kernel is called with one tile, a matrix of
// rows x columns elements; everything it needs is in the tile, so it takes no lock, owns no memory
// and may run on any number of threads at once.

// How an operand moves along the columns: one element each, or the same element for the whole row.
enum class column_class : std::uint8_t { unit, zero };

// plain: ordinary stores. stream: stores past the caches, except for the parts of a row that do not
// fill a cache line; the caller issues finish_streaming() before anybody else may read dst.
enum class store_policy : std::uint8_t { plain, stream };

// dst[r][c] = cond[r][c] != 0 ? src_0[r][c] : src_1[r][c].
// Strides between rows are in bytes and may be 0. Elements are bits: any alignment, any content.
// dst may be src_0 or src_1 where their row strides agree. A kernel reads cond, the source elements
// that cond selects and others of the same rows, and nothing else; it writes dst's elements only.
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

// The same where both sources are scattered, and only what cond selects is read: element c of a row
// lies offsets[2 * c] behind the row's first one in src_1, offsets[2 * c + 1] in src_0.
using pick_fn = void (*)(const select_tile&, const std::int32_t* offsets);

// How runs of a few bytes fill registers of 16: register r is put together from `count` windows,
// the 16 bytes at offsets[r * count + w], of which the 16 numbers at shuffles[(r * count + w) * 16]
// pick bytes, 0x80 none. The last register ends with the run of registers.
struct byte_windows {
    std::int64_t count = 0; // 0: moving the runs one by one is faster
    std::vector<std::int32_t> offsets;
    std::vector<std::uint8_t> shuffles;
};

// Rows of single bytes that registers of 32 bytes transpose at once; of wider elements fewer.
inline constexpr std::int64_t widest_block = 32;

// How a scattered operand lies in a dense buffer: `groups` times `items` items. Item i of group g
// lies at strided + g * group_bytes + offsets[i]; in the buffer items are one behind the other and
// groups buffer_group_bytes apart.
//   gather:    an item is `item_bytes` bytes, copied into the buffer. Where the tile allows it, a
//              kernel may put a group's part of the buffer together from windows instead, and so
//              read bytes between items, too.
//   scatter:   the same, from the buffer.
//   step:      as gather, an item is one element, and each lies offsets[1] behind the one before it
//              (before it where that is negative). Other offsets are not read.
//   splat:     an item is one element, repeated until it fills `item_bytes` in the buffer. May
//              write up to pack_slack_bytes behind the last item.
//   transpose: an item is one element, and groups lie one element apart (group_bytes is the width).
//              In the buffer group g begins at group_places[g]; buffer_group_bytes is 0 where these
//              are not evenly apart. Where groups are one behind the other it may write up to
//              pack_slack_bytes behind the last one.
// All of that `blocks` times: block b lies block_offsets[b] further on, and in the buffer
// groups * buffer_group_bytes, for transpose block_places[b], further on.
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
    std::int64_t most_items =
        widest_block;        // transpose: so many may be read at once, their lines stay in L1
    bool even_items = false; // transpose: each item is as far from the one before it as the second
    byte_windows windows;    // gather
};

// Cache lines to ask for: each offset is of a byte in one. They may lie anywhere.
struct lines_ahead {
    const std::byte* from = nullptr;
    std::span<const std::int32_t> offsets;
};

struct pack_tile {
    std::byte* strided; // only read, except by scatter
    std::byte* buffer;  // only written, except by scatter
    const pack_layout& layout;
    bool may_use_windows;
    // Asked for on the way, some after each group or block of registers: all at once would hold up
    // what this tile loads.
    lines_ahead ahead;
};
using pack_fn = void (*)(const pack_tile&);

// How an operand reaches the select kernel. direct: it is read (or written) where it lies. repeat:
// a pattern that lies in one piece is copied. The others are packed by the kernel of that name.
enum class access_kind : std::uint8_t { direct, repeat, gather, scatter, step, splat, transpose };

inline constexpr std::int64_t pack_slack_bytes = 64;
inline constexpr std::int64_t window_bytes = 16;
inline constexpr std::int64_t most_windows = 8;

} // namespace maskwise
