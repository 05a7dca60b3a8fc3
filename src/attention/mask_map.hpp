#pragma once

#include "kernel/attention/contract.hpp"
#include "maskwise/maskwise.hpp"

#include <cstdint>

namespace maskwise {

// A mask's effect on a tile: no score, every score or some scores are masked. A bias is `kept` if
// it is 0 throughout the tile.
enum class tile_mask : std::uint8_t { kept, masked, mixed };

// The treatment of one key tile of a row tile.
enum class tile_action : std::uint8_t {
    skip, // every weight is 0
    compute,
    defer, // the bias is so low that every weight may be 0
    fill,  // every score is the fill, which is finite
};

struct key_tile {
    std::int64_t number = 0, first = 0, keys = 0;
    tile_action action = tile_action::skip;
    // Parts of the mask that must be applied to each score.
    bool needs_spans = false; // the rules mask keys of the tile in some row
    bool needs_cond = false;
    bool needs_bias = false;
    float highest_bias = 0; // of the tile; infinity if unknown
};

// The meaning of a mask's elements.
enum class mask_kind : std::uint8_t { true_keeps, true_masks, bias_f32, bias_bf16, bias_f16 };

// Layout of a map, which has one entry per tile of a cond or bias. Heads that share a tile share
// its entry: broadcast outer dimensions and rows have extent 1.
struct mask_layout {
    dims outer, outer_bytes; // of the operand; extent 1 if broadcast
    dims outer_tiles;        // strides in the map; 0 if broadcast
    std::int64_t heads = 0;  // 0 if the operand is absent
    std::int64_t rows = 0, keys = 0, row_bytes = 0, key_bytes = 0;
    std::int64_t tile_rows = 0, tile_keys = 0;
    std::int64_t row_tiles = 0, key_tiles = 0;
    mask_kind kind = mask_kind::true_keeps;
    bool bounds_mixed = false; // also find the largest bias of mixed tiles

    bool is_bias() const { return kind >= mask_kind::bias_f32; }
    std::int64_t tiles() const { return heads * row_tiles * key_tiles; }
    friend bool operator==(const mask_layout&, const mask_layout&) = default;
};

// `strides_bytes`: the operand's strides for {outer..., rows, keys}, 0 in broadcast dimensions.
mask_layout make_mask_layout(mask_kind kind, const dims& outer, std::int64_t rows,
                             std::int64_t keys, const dims& strides_bytes, std::int64_t tile_rows,
                             std::int64_t tile_keys);

// Slice `number` of `parts` slices of the key tiles.
struct map_part {
    std::int64_t number = 0, parts = 1;
};

// Classifies the key tiles of one row tile, or a slice of them. `number` is the row tile's index
// over all heads. Writes each tile's largest bias to `highest`, where NaN counts as the largest.
// Mixed tiles get infinity unless bounds_mixed. `highest` is unused for a cond.
void map_row_tile(const mask_layout& layout, const attention_kernels& kernels, const void* mask,
                  std::int64_t number, tile_mask* tiles, float* highest, map_part part = {});

// Returns the map index of a row tile's first key tile. `position`: the head's index in `outer`.
std::int64_t place_in_map(const mask_layout& layout, std::span<const std::int64_t> position,
                          std::int64_t row_tile);

} // namespace maskwise
