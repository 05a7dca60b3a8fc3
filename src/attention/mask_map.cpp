#include "attention/mask_map.hpp"

#include "tensor/position.hpp"

#include <algorithm>
#include <limits>

namespace maskwise {
namespace {

// The OR and the minimum of a tile's bytes.
struct bytes_seen {
    std::uint8_t any = 0, least = 0xFF;

    bool is_mixed() const { return any != 0 && least == 0; }
    tile_mask state(bool true_masks) const {
        if (is_mixed()) return tile_mask::mixed;
        return (any != 0) != true_masks ? tile_mask::kept : tile_mask::masked;
    }
};

// Adjacent bytes have a separate loop, which the compiler vectorizes.
void scan_row(const std::uint8_t* row, std::int64_t keys, std::int64_t key_bytes,
              bytes_seen& seen) {
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

tile_mask classify_conds(const std::uint8_t* first, std::int64_t rows, std::int64_t keys,
                         const mask_layout& layout) {
    bytes_seen seen;
    for (std::int64_t r = 0; r < rows && !seen.is_mixed(); ++r)
        scan_row(first + r * layout.row_bytes, keys, layout.key_bytes, seen);
    return seen.state(layout.kind == mask_kind::true_masks);
}

elem_type type_of(mask_kind bias) {
    if (bias == mask_kind::bias_f32) return elem_type::f32;
    return bias == mask_kind::bias_bf16 ? elem_type::bf16 : elem_type::f16;
}

tile_mask state_of(const number_range& seen, elem_type type) {
    const float masks_from = type == elem_type::f16 ? -65504.0F : -1e30F;
    if (seen.has_nan) return tile_mask::mixed;
    if (seen.least == 0 && seen.largest == 0) return tile_mask::kept;
    return seen.largest <= masks_from ? tile_mask::masked : tile_mask::mixed;
}

// The number of tiles that are read together, a few rows at a time, because memory is faster along
// a row.
constexpr std::int64_t tiles_at_once = 16;

float highest_of(const number_range& seen, tile_mask state, const mask_layout& layout) {
    if (state == tile_mask::mixed && !layout.bounds_mixed)
        return std::numeric_limits<float>::infinity();
    return seen.has_nan ? std::numeric_limits<float>::quiet_NaN() : seen.largest;
}

// Classifies up to tiles_at_once tiles with `keys` keys in total. Unless bounds_mixed, skips the
// remaining rows of a mixed tile, because the tile stays mixed.
void classify_biases(const strided_matrix& bias, std::int64_t rows, std::int64_t keys,
                     const mask_layout& layout, const attention_kernels& kernels, tile_mask* tiles,
                     float* highest) {
    constexpr std::int64_t some_rows = 4;
    number_range seen[tiles_at_once];
    const std::int64_t count = (keys + layout.tile_keys - 1) / layout.tile_keys;
    std::fill_n(tiles, count, tile_mask::kept);
    for (std::int64_t r = 0; r < rows; r += some_rows)
        for (std::int64_t t = 0; t < count; ++t) {
            if (tiles[t] == tile_mask::mixed && !layout.bounds_mixed) continue;
            const std::int64_t first_key = t * layout.tile_keys;
            strided_matrix part = bias;
            part.first += r * bias.row_bytes + first_key * bias.column_bytes;
            kernels.update_range(part, std::min(some_rows, rows - r),
                                 std::min(layout.tile_keys, keys - first_key), seen[t]);
            tiles[t] = state_of(seen[t], bias.type);
        }
    for (std::int64_t t = 0; t < count; ++t) highest[t] = highest_of(seen[t], tiles[t], layout);
}

} // namespace

mask_layout make_mask_layout(mask_kind kind, const dims& outer, std::int64_t rows,
                             std::int64_t keys, const dims& strides_bytes, std::int64_t tile_rows,
                             std::int64_t tile_keys) {
    mask_layout layout;
    layout.kind = kind;
    const int rank = outer.rank();
    layout.outer = layout.outer_bytes = layout.outer_tiles = dims::filled(rank, 1);
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

void map_row_tile(const mask_layout& layout, const attention_kernels& kernels, const void* mask,
                  std::int64_t number, tile_mask* tiles, float* highest, map_part part) {
    const std::int64_t head = number / layout.row_tiles, row_tile = number % layout.row_tiles;
    const std::int64_t first_row = row_tile * layout.tile_rows;
    const std::int64_t rows = std::min(layout.tile_rows, layout.rows - first_row);
    const std::int64_t offset = offset_of(shape_position(head, layout.outer), layout.outer_bytes) +
                                first_row * layout.row_bytes;
    auto* const first_byte = static_cast<std::byte*>(const_cast<void*>(mask)) + offset;
    const auto part_begin = [&](std::int64_t p) { return layout.key_tiles * p / part.parts; };
    const std::int64_t last = part_begin(part.number + 1);
    const std::int64_t step = layout.is_bias() ? tiles_at_once : 1;
    for (std::int64_t t = part_begin(part.number); t < last; t += step) {
        const std::int64_t first_key = t * layout.tile_keys;
        const std::int64_t end = std::min(layout.keys, std::min(last, t + step) * layout.tile_keys);
        std::byte* const first = first_byte + first_key * layout.key_bytes;
        if (layout.is_bias())
            classify_biases({first, type_of(layout.kind), layout.row_bytes, layout.key_bytes}, rows,
                            end - first_key, layout, kernels, tiles + t, highest + t);
        else
            tiles[t] = classify_conds(reinterpret_cast<const std::uint8_t*>(first), rows,
                                      end - first_key, layout);
    }
}

std::int64_t place_in_map(const mask_layout& layout, std::span<const std::int64_t> position,
                          std::int64_t row_tile) {
    return offset_of(position, layout.outer_tiles) +
           (layout.row_tiles == 1 ? 0 : row_tile * layout.key_tiles);
}

} // namespace maskwise
