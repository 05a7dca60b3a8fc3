#pragma once

#include "plan/tiling.hpp"

namespace maskwise {

// The nest's loops in the order in which tiles are walked, outermost first.
struct loop_order {
    int count = 0;
    std::array<int, max_rank> loops{};
};

// dst's order, unless a source would be fetched or packed repeatedly. A loop goes innermost if an
// operand is constant along it (a mask shared by heads), or if an operand's cache lines run along
// it and the tile does not cover it. `is_moved`: packing moves the operand's elements one by one. A
// pure function.
loop_order choose_loop_order(const loop_nest& nest, const tiling& tile,
                             const per_operand<bool>& is_moved);

} // namespace maskwise
