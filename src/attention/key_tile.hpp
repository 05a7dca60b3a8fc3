#pragma once

#include <cstdint>

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

} // namespace maskwise
