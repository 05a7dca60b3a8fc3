#include "plan/loop_order.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>

namespace maskwise {
namespace {

// Operands up to this size stay in L2 between two uses.
constexpr std::int64_t cached_bytes = 128 << 10;

// Contiguous pieces of this length share few of their cache lines with other tiles.
constexpr std::int64_t long_piece_bytes = 512;

void move_innermost(loop_order& order, int loop) {
    const auto begin = order.loops.begin(), end = begin + order.count;
    const auto position = std::find(begin, end, loop);
    if (position != end) std::rotate(position, position + 1, end);
}

// Returns the operand's distinct bytes in all loops inside `loop`.
std::int64_t bytes_inside(const loop_nest& nest, int loop, std::size_t operand) {
    std::int64_t bytes = nest.width_bytes[operand];
    for (const int d : nest.numbers().first(static_cast<std::size_t>(loop)))
        if (nest[d].stride_bytes[operand] != 0) bytes *= nest[d].extent;
    return bytes;
}

void reuse_shared_operands(loop_order& order, const loop_nest& nest) {
    const auto outermost_first = order.loops;
    // The loop that is moved last becomes the innermost. Sources are last, because they are wider
    // than cond.
    for (const std::size_t operand : {op_cond, op_src_1, op_src_0})
        for (const int d : std::span(outermost_first).first(nest.numbers().size()))
            if (nest[d].stride_bytes[operand] == 0 && bytes_inside(nest, d, operand) > cached_bytes)
                move_innermost(order, d);
}

// Makes successive tiles reuse operands that an earlier tile packed. cond is last, because cond is
// shared by the most tiles.
void reuse_packed_operands(loop_order& order, const loop_nest& nest, const tiling& tile,
                           const per_operand<bool>& is_moved) {
    const auto outermost_first = order.loops;
    for (const std::size_t operand : {op_src_1, op_src_0, op_cond})
        for (const int d : std::span(outermost_first).first(nest.numbers().size()))
            if (is_moved[operand] && nest[d].stride_bytes[operand] == 0 && tile[d] < nest[d].extent)
                move_innermost(order, d);
}

// Returns the loop along which the operand's memory continues right after the tile's contiguous
// pieces. -1 if the tile covers every loop in which the operand's stride is not 0, or if the pieces
// are long.
int next_in_memory(const loop_nest& nest, const tiling& tile, std::size_t operand) {
    int nearest = -1;
    const auto stride = [&](int d) { return std::abs(nest[d].stride_bytes[operand]); };
    for (const int d : nest.numbers())
        if (tile[d] < nest[d].extent && stride(d) != 0 &&
            (nearest < 0 || stride(d) < stride(nearest)))
            nearest = d;
    const bool is_short = nearest >= 0 && tile[nearest] * stride(nearest) < long_piece_bytes;
    return is_short ? nearest : -1;
}

// Makes the next tile finish the cache lines in which this tile ends.
void follow_cache_lines(loop_order& order, const loop_nest& nest, const tiling& tile) {
    for (const std::size_t o : every_operand)
        if (distinct_bytes(nest, o) > cached_bytes)
            move_innermost(order, next_in_memory(nest, tile, o));
}

} // namespace

loop_order choose_loop_order(const loop_nest& nest, const tiling& tile,
                             const per_operand<bool>& is_moved) {
    loop_order order{nest.rank, {}};
    std::ranges::reverse_copy(nest.numbers(), order.loops.begin());
    reuse_shared_operands(order, nest);
    reuse_packed_operands(order, nest, tile, is_moved);
    follow_cache_lines(order, nest, tile);
    return order;
}

} // namespace maskwise
