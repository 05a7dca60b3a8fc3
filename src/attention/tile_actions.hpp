#pragma once

#include "attention/attention_plan.hpp"

namespace maskwise {

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
