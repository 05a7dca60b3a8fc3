#pragma once

#include "plan/tiling.hpp"

#include <vector>

namespace maskwise {

// A nest with f32 sources and dst. Loops are innermost first.
inline loop_nest nest_of(const std::vector<loop_dim>& loops) {
    loop_nest nest;
    nest.width_bytes = {1, 4, 4, 4};
    nest.elements = 1;
    for (const loop_dim& loop : loops) {
        nest[nest.rank++] = loop;
        nest.elements *= loop.extent;
    }
    return nest;
}

// Extents of a tile, innermost first; 1 for every loop past the list.
inline tile_extents extents_of(const std::vector<std::int64_t>& inner_first) {
    tile_extents result;
    result.fill(1);
    for (std::size_t i = 0; i < inner_first.size(); ++i) result[i] = inner_first[i];
    return result;
}

} // namespace maskwise
