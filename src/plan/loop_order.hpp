#pragma once

#include "plan/tiling.hpp"

namespace maskwise {

// The nest's loops in the order of the walk over tiles, outermost first.
struct loop_order {
    int count = 0;
    std::array<int, max_rank> loops{};
};

// Returns dst's order, unless an operand would be fetched or packed repeatedly. A loop becomes the
// innermost if an operand's stride in the loop is 0 (such as a mask that heads share), or if an
// operand's cache lines continue along the loop past the tile. `is_moved`: packing moves the
// operand's elements one by one. A pure function.
loop_order choose_loop_order(const loop_nest& nest, const tiling& tile,
                             const per_operand<bool>& is_moved);

} // namespace maskwise
