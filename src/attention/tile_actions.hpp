#pragma once

#include "attention/attention_plan.hpp"

namespace maskwise {

// What happens to a key tile of a row tile.
enum class tile_action : std::uint8_t {
    skip, // no place has a weight
    compute,
    postpone, // the bias masks what is kept by a finite number: a weight in rows with nothing else
    fill,     // every place has a fill that is finite
};

struct key_tile {
    std::int64_t number = 0, first = 0, keys = 0;
    tile_action action = tile_action::skip;
    // What of the mask still has to be looked at, place by place.
    bool is_crossed = false; // by the causal boundary
    bool is_selected = false;
    bool is_biased = false;
    float highest_bias = 0; // of the tile, or infinity
};

// The maps of cond and of bias; of all row tiles, or of one. Null where there is none.
struct tile_maps {
    const tile_mask *cond = nullptr, *bias = nullptr;
    const float* highest_bias = nullptr;
};

// Some queries of a head, with their part of the maps.
struct row_tile {
    std::int64_t first = 0, rows = 0;
    tile_maps maps;
};

key_tile decide(const attention_data& plan, const attention_numbers& numbers, const row_tile& rows,
                std::int64_t number);

// Whether a tile that is postponed or filled has a weight in one of these rows, of which the
// largest scores so far are given.
bool has_weight(const key_tile& keys, float fill, const float* maxima, std::int64_t rows);

} // namespace maskwise
