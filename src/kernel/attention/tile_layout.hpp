#pragma once

#include <cstdint>

namespace maskwise {

// AMX tiles of bf16. A row of `a` is 16 contiguous pairs; row k of `b` holds pair k of each column.
// All code uses the same eight tiles of 16 rows: four for sums, two for a, two for b.
inline constexpr std::int64_t tile_rows = 16, tile_pairs = 16;
inline constexpr int first_a_tile = 4, first_b_tile = 6;

} // namespace maskwise
