#pragma once

#include <cstdint>

namespace maskwise {

// Tiles of bf16 (AMX): a row of `a` is 16 pairs that lie side by side, and row k of `b` holds pair
// k of each column. Every user has the same eight tiles of 16 rows: four of sums, two of a, two of
// b.
inline constexpr std::int64_t tile_rows = 16, tile_pairs = 16;
inline constexpr int first_a_tile = 4, first_b_tile = 6;

} // namespace maskwise
