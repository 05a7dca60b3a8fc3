#include "attention/mask_map.hpp"

#include <algorithm>
#include <cstring>

namespace maskwise {
namespace {

// The bytes of a tile: whether any is 0, and whether any is not.
struct bytes_seen {
    std::uint8_t any = 0, least = 0xFF;

    bool is_mixed() const { return any != 0 && least == 0; }
    tile_mask state(bool true_masks) const {
        if (is_mixed()) return tile_mask::mixed;
        return (any != 0) != true_masks ? tile_mask::kept : tile_mask::masked;
    }
};

// The compiler makes vectors of the first loop, at any baseline.
void see_row(const std::uint8_t* row, std::int64_t keys, std::int64_t key_bytes, bytes_seen& seen) {
    std::uint8_t any = seen.any, least = seen.least;
    if (key_bytes == 1) {
        for (std::int64_t i = 0; i < keys; ++i) {
            any = static_cast<std::uint8_t>(any | row[i]);
            least = std::min(least, row[i]);
        }
    } else {
        for (std::int64_t i = 0; i < keys; ++i) {
            any = static_cast<std::uint8_t>(any | row[i * key_bytes]);
            least = std::min(least, row[i * key_bytes]);
        }
    }
    seen = {any, least};
}

tile_mask see_conds(const std::uint8_t* first, std::int64_t rows, std::int64_t keys,
                    const mask_layout& layout) {
    bytes_seen seen;
    for (std::int64_t r = 0; r < rows && !seen.is_mixed(); ++r)
        see_row(first + r * layout.row_bytes, keys, layout.key_bytes, seen);
    return seen.state(layout.kind == mask_kind::true_masks);
}

// A bias that masks: its bits, as a number, are those of -infinity or at most `span` below.
template <class Bits>
struct masking_bias {
    Bits minus_infinity, span;
};
constexpr masking_bias<std::uint32_t> masking_f32{0xFF800000, 0xFF800000 - 0xF149F2CA}; // -1e30
constexpr masking_bias<std::uint16_t> masking_bf16{0xFF80, 0xFF80 - 0xF14A};
constexpr masking_bias<std::uint16_t> masking_f16{0xFC00, 1}; // from -65504, the lowest

template <class Bits>
tile_mask see_bias(const std::uint8_t* first, std::int64_t rows, std::int64_t keys,
                   const mask_layout& layout, masking_bias<Bits> masking) {
    Bits all_mask = 1, any_set = 0;
    for (std::int64_t r = 0; r < rows && (all_mask == 1 || any_set == 0); ++r)
        for (std::int64_t i = 0; i < keys; ++i) {
            Bits bits;
            std::memcpy(&bits, first + r * layout.row_bytes + i * layout.key_bytes, sizeof bits);
            const auto below = static_cast<Bits>(masking.minus_infinity - bits);
            all_mask = static_cast<Bits>(all_mask & static_cast<Bits>(below <= masking.span));
            any_set = static_cast<Bits>(any_set | static_cast<Bits>(bits << 1)); // -0 is 0, too
        }
    if (any_set == 0) return tile_mask::kept;
    return all_mask == 1 ? tile_mask::masked : tile_mask::mixed;
}

tile_mask see_tile(const std::uint8_t* first, std::int64_t rows, std::int64_t keys,
                   const mask_layout& layout) {
    switch (layout.kind) {
    case mask_kind::bias_f32:
        return see_bias(first, rows, keys, layout, masking_f32);
    case mask_kind::bias_bf16:
        return see_bias(first, rows, keys, layout, masking_bf16);
    case mask_kind::bias_f16:
        return see_bias(first, rows, keys, layout, masking_f16);
    default:
        return see_conds(first, rows, keys, layout);
    }
}

const std::uint8_t* head_of(const mask_layout& layout, const void* mask, std::int64_t head) {
    const auto* at = static_cast<const std::uint8_t*>(mask);
    for (int d = layout.outer.rank() - 1; d >= 0; --d) {
        at += head % layout.outer[d] * layout.outer_bytes[d];
        head /= layout.outer[d];
    }
    return at;
}

} // namespace

mask_layout make_mask_layout(mask_kind kind, const dims& outer, std::int64_t rows,
                             std::int64_t keys, const dims& strides_bytes, std::int64_t tile_rows,
                             std::int64_t tile_keys) {
    mask_layout layout;
    layout.kind = kind;
    const int rank = outer.rank();
    layout.outer = layout.outer_bytes = layout.outer_tiles = dims(rank, 1);
    layout.row_bytes = strides_bytes[rank];
    layout.key_bytes = strides_bytes[rank + 1];
    layout.rows = layout.row_bytes == 0 ? 1 : rows;
    layout.keys = keys;
    layout.tile_rows = tile_rows;
    layout.tile_keys = tile_keys;
    layout.row_tiles = (layout.rows + tile_rows - 1) / tile_rows;
    layout.key_tiles = (keys + tile_keys - 1) / tile_keys;
    layout.heads = 1;
    for (int d = rank - 1; d >= 0; --d) {
        const bool is_shared = strides_bytes[d] == 0;
        layout.outer[d] = is_shared ? 1 : outer[d];
        layout.outer_bytes[d] = strides_bytes[d];
        layout.outer_tiles[d] = is_shared ? 0 : layout.heads * layout.row_tiles * layout.key_tiles;
        layout.heads *= layout.outer[d];
    }
    return layout;
}

void map_row_tile(const mask_layout& layout, const void* mask, std::int64_t number,
                  tile_mask* tiles) {
    const std::int64_t head = number / layout.row_tiles, row_tile = number % layout.row_tiles;
    const std::int64_t first_row = row_tile * layout.tile_rows;
    const std::int64_t rows = std::min(layout.tile_rows, layout.rows - first_row);
    const std::uint8_t* const at = head_of(layout, mask, head) + first_row * layout.row_bytes;
    for (std::int64_t t = 0; t < layout.key_tiles; ++t) {
        const std::int64_t first_key = t * layout.tile_keys;
        const std::int64_t keys = std::min(layout.tile_keys, layout.keys - first_key);
        tiles[t] = see_tile(at + first_key * layout.key_bytes, rows, keys, layout);
    }
}

std::int64_t place_in_map(const mask_layout& layout, const dims& position, std::int64_t row_tile) {
    std::int64_t place = layout.row_tiles == 1 ? 0 : row_tile * layout.key_tiles;
    for (int d = 0; d < position.rank(); ++d) place += position[d] * layout.outer_tiles[d];
    return place;
}

tile_mask causal_tile(std::int64_t boundary, std::int64_t first_row, std::int64_t rows,
                      std::int64_t first_key, std::int64_t keys) {
    if (first_key + keys - 1 <= boundary + first_row) return tile_mask::kept;
    return first_key > boundary + first_row + rows - 1 ? tile_mask::masked : tile_mask::mixed;
}

} // namespace maskwise
