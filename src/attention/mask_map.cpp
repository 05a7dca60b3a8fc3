#include "attention/mask_map.hpp"

#include "tensor/position.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

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

// How the bits of a bias stand for numbers. One that masks is, as a number of these bits, that of
// -infinity or at most `span` below.
template <class Bits>
struct bias_bits {
    Bits minus_infinity, span;
    float (*number)(Bits bits);
};

float number_of_f32(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}

float number_of_bf16(std::uint16_t bits) {
    return number_of_f32(static_cast<std::uint32_t>(bits) << 16);
}

// Exponent and mantissa move to where f32 has them; 2^112 makes up for the exponents' offsets, and
// exponents of 31 are infinity and NaN.
float number_of_f16(std::uint16_t bits) {
    const std::uint32_t moved = static_cast<std::uint32_t>(bits & 0x7FFF) << 13;
    const float size = (bits & 0x7C00) == 0x7C00 ? number_of_f32(moved | 0x7F800000)
                                                 : number_of_f32(moved) * 0x1p112F;
    return (bits & 0x8000) != 0 ? -size : size;
}

constexpr bias_bits<std::uint32_t> f32_bits{0xFF800000, 0xFF800000 - 0xF149F2CA,
                                            number_of_f32}; // from -1e30
constexpr bias_bits<std::uint16_t> bf16_bits{0xFF80, 0xFF80 - 0xF14A, number_of_bf16};
constexpr bias_bits<std::uint16_t> f16_bits{0xFC00, 1, number_of_f16}; // from -65504, the lowest

// Of the numbers that mask, the largest has the least bits.
template <class Bits>
struct bias_seen {
    Bits all_mask = 1, any_set = 0, least = std::numeric_limits<Bits>::max();

    bool is_mixed() const { return all_mask == 0 && any_set != 0; }
    tile_mask state() const {
        if (any_set == 0) return tile_mask::kept;
        return all_mask == 1 ? tile_mask::masked : tile_mask::mixed;
    }
};

template <class Bits>
void see_row(const std::uint8_t* row, std::int64_t keys, std::int64_t key_bytes,
             const bias_bits<Bits>& how, bias_seen<Bits>& so_far) {
    bias_seen<Bits> seen = so_far;
    for (std::int64_t i = 0; i < keys; ++i) {
        Bits bits;
        std::memcpy(&bits, row + i * key_bytes, sizeof bits);
        const auto below = static_cast<Bits>(how.minus_infinity - bits);
        seen.all_mask = static_cast<Bits>(seen.all_mask & static_cast<Bits>(below <= how.span));
        seen.any_set = static_cast<Bits>(seen.any_set | static_cast<Bits>(bits << 1)); // -0 is 0
        seen.least = std::min(seen.least, bits);
    }
    so_far = seen;
}

template <class Bits>
float highest_of_row(const std::uint8_t* row, std::int64_t keys, std::int64_t key_bytes,
                     const bias_bits<Bits>& how, float highest) {
    for (std::int64_t i = 0; i < keys; ++i) {
        Bits bits;
        std::memcpy(&bits, row + i * key_bytes, sizeof bits);
        const float number = how.number(bits);
        highest = std::isnan(highest) || highest > number ? highest : number;
    }
    return highest;
}

template <class Bits>
tile_mask see_bias(const std::uint8_t* first, std::int64_t rows, std::int64_t keys,
                   const mask_layout& layout, const bias_bits<Bits>& how, float& highest) {
    bias_seen<Bits> seen;
    for (std::int64_t r = 0; r < rows && !seen.is_mixed(); ++r)
        see_row(first + r * layout.row_bytes, keys, layout.key_bytes, how, seen);
    const tile_mask state = seen.state();
    highest = state == tile_mask::kept     ? 0
              : state == tile_mask::masked ? how.number(seen.least)
                                           : std::numeric_limits<float>::infinity();
    if (state != tile_mask::mixed || !layout.bounds_mixed) return state;
    highest = -std::numeric_limits<float>::infinity();
    for (std::int64_t r = 0; r < rows; ++r)
        highest =
            highest_of_row(first + r * layout.row_bytes, keys, layout.key_bytes, how, highest);
    return state;
}

tile_mask see_tile(const std::uint8_t* first, std::int64_t rows, std::int64_t keys,
                   const mask_layout& layout, float* highest) {
    switch (layout.kind) {
    case mask_kind::bias_f32:
        return see_bias(first, rows, keys, layout, f32_bits, *highest);
    case mask_kind::bias_bf16:
        return see_bias(first, rows, keys, layout, bf16_bits, *highest);
    case mask_kind::bias_f16:
        return see_bias(first, rows, keys, layout, f16_bits, *highest);
    default:
        return see_conds(first, rows, keys, layout);
    }
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

void map_row_tile(const mask_layout& layout, const void* mask, std::int64_t number,
                  tile_mask* tiles, float* highest) {
    const std::int64_t head = number / layout.row_tiles, row_tile = number % layout.row_tiles;
    const std::int64_t first_row = row_tile * layout.tile_rows;
    const std::int64_t rows = std::min(layout.tile_rows, layout.rows - first_row);
    const std::uint8_t* const at =
        static_cast<const std::uint8_t*>(mask) +
        offset_of(shape_position(head, layout.outer), layout.outer_bytes) +
        first_row * layout.row_bytes;
    for (std::int64_t t = 0; t < layout.key_tiles; ++t) {
        const std::int64_t first_key = t * layout.tile_keys;
        const std::int64_t keys = std::min(layout.tile_keys, layout.keys - first_key);
        tiles[t] = see_tile(at + first_key * layout.key_bytes, rows, keys, layout,
                            layout.is_bias() ? highest + t : nullptr);
    }
}

std::int64_t place_in_map(const mask_layout& layout, std::span<const std::int64_t> position,
                          std::int64_t row_tile) {
    return offset_of(position, layout.outer_tiles) +
           (layout.row_tiles == 1 ? 0 : row_tile * layout.key_tiles);
}

tile_mask causal_tile(std::int64_t boundary, std::int64_t first_row, std::int64_t rows,
                      std::int64_t first_key, std::int64_t keys) {
    if (first_key + keys - 1 <= boundary + first_row) return tile_mask::kept;
    return first_key > boundary + first_row + rows - 1 ? tile_mask::masked : tile_mask::mixed;
}

} // namespace maskwise
