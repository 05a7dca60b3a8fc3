#pragma once

#include "plan/loop_nest.hpp"

namespace maskwise {

using tile_extents = std::array<std::int64_t, max_rank>; // elements of each loop

inline constexpr std::int64_t line_bytes = 64; // of the caches

// At most so many loops are cut into tiles that leave a smaller one at the end.
inline constexpr int most_cut_loops = 3;

// `extent` in equal chunks of at most `most` (or `step`), whole multiples of `step` where it is
// cut.
std::int64_t chunk_of(std::int64_t extent, std::int64_t most, std::int64_t step);

// A box of the nest for operands that do not all run along the innermost loop. It holds, of every
// operand, pieces that lie side by side in memory, as long as the buffers of a tile allow: a line
// or page that one tile touches and does not use up would be fetched again by another one. A pure
// function of the nest, whose rank is 1 or more.
tile_extents choose_box(const loop_nest& nest);

} // namespace maskwise
