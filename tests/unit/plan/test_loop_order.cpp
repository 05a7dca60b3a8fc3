// Tests the order of loops over tiles, which affects only speed.

#include "plan/loop_order.hpp"
#include "unit/plan/nests.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

// Returns loops outermost first. By default, the tile covers all loops.
std::vector<int> order_of(const loop_nest& nest, std::vector<std::int64_t> tile_inner_first = {},
                          const per_operand<bool>& is_moved = {}) {
    tiling tile;
    for (const loop_dim& loop : nest)
        if (tile_inner_first.size() < static_cast<std::size_t>(nest.rank))
            tile_inner_first.push_back(loop.extent);
    tile.extent = extents_of(tile_inner_first);
    const loop_order order = choose_loop_order(nest, tile, is_moved);
    return {order.loops.begin(), order.loops.begin() + order.count};
}

using loops = std::vector<int>;

constexpr std::int64_t cached_bytes = 128 << 10;

TEST(loop_order, follows_dst) {
    EXPECT_EQ(order_of(nest_of({{100, {1, 4, 4, 4}}, {100, {100, 400, 400, 500}}})), (loops{1, 0}));
}

// An operand of more than 128 KB that is constant along a loop must not be fetched again in each
// iteration.
TEST(loop_order, keeps_shared_operands_in_cache) {
    const auto shared = [](std::int64_t bytes) {
        return order_of(nest_of({{bytes, {1, 4, 4, 4}}, {3, {0, 0, 4 * bytes, 4 * bytes}}}));
    };
    EXPECT_EQ(shared(cached_bytes / 4), (loops{1, 0})); // src_0 has 128 KB
    EXPECT_EQ(shared(cached_bytes / 4 + 1), (loops{0, 1}));
}

// The operand's bytes are counted over inner loops along which the operand moves.
TEST(loop_order, counts_bytes_inside_the_shared_loop) {
    const auto order = [](std::int64_t cond_bytes) {
        return order_of(nest_of(
            {{1000, {1, 0, 0, 4}}, {200, {cond_bytes, 0, 0, 4000}}, {3, {0, 0, 0, 800000}}}));
    };
    EXPECT_EQ(order(1000), (loops{1, 0, 2}));
    EXPECT_EQ(order(0), (loops{2, 1, 0}));
}

// src_0's shared loop is innermost, then src_1's, then cond's.
TEST(loop_order, moves_the_loop_of_src_0_last) {
    constexpr std::int64_t n = 200000, row = 4 * n;
    EXPECT_EQ(order_of(nest_of({{n, {1, 4, 4, 4}},
                                {2, {0, row, row, row}},
                                {2, {n, 0, 2 * row, 2 * row}},
                                {2, {2 * n, 2 * row, 0, 4 * row}}})),
              (loops{0, 1, 3, 2}));
}

// An operand that is packed element by element is packed once for all tiles that share it.
TEST(loop_order, keeps_packed_operands) {
    const auto order = [](const per_operand<bool>& is_moved) {
        return order_of(
            nest_of({{100, {6, 4, 8, 4}}, {30, {0, 400, 0, 400}}, {3, {600, 0, 0, 12000}}}),
            {10, 1, 1}, is_moved);
    };
    EXPECT_EQ(order({}), (loops{2, 1, 0}));
    EXPECT_EQ(order({true, false, false, false}), (loops{2, 0, 1}));
    EXPECT_EQ(order({false, true, false, false}), (loops{1, 0, 2}));
    EXPECT_EQ(order({true, true, false, false}), (loops{0, 2, 1}));
    EXPECT_EQ(order({false, false, true, false}), (loops{0, 2, 1}));
}

// src_1 is column-major. Tiles have whole rows of dst, so the next tile continues src_1's columns.
loops transposed(std::int64_t columns, std::int64_t rows, std::int64_t rows_of_tile) {
    return order_of(nest_of({{columns, {0, 0, 4 * rows, 4}}, {rows, {0, 0, 4, 4 * columns}}}),
                    {columns, rows_of_tile});
}

TEST(loop_order, continues_in_the_lines_in_which_the_tile_ends) {
    EXPECT_EQ(transposed(200, 1000, 127), (loops{0, 1}));
    EXPECT_EQ(transposed(200, 1000, 128), (loops{1, 0})); // runs of 512 bytes share few lines
    EXPECT_EQ(transposed(128, 257, 10), (loops{0, 1}));
    EXPECT_EQ(transposed(128, 256, 10), (loops{1, 0})); // 128 KB stay in L2
}

TEST(loop_order, continues_in_the_lines_of_each_operand) {
    const auto order = [](const per_operand<std::int64_t>& inner,
                          const per_operand<std::int64_t>& outer) {
        return order_of(nest_of({{1000, inner}, {1000, outer}}), {1000, 10});
    };
    EXPECT_EQ(order({1000, 0, 0, 4}, {1, 0, 0, 4000}), (loops{0, 1}));
    EXPECT_EQ(order({0, 4000, 0, 4}, {0, 4, 0, 4000}), (loops{0, 1}));
    EXPECT_EQ(order({0, 0, -4000, 4}, {0, 0, -4, 4000}), (loops{0, 1}));
    EXPECT_EQ(order({0, 0, 0, 4}, {0, 0, 0, 4000}), (loops{1, 0}));
}

// If the tile cuts two loops, the loop with the operand's shorter stride is innermost. In the last
// nest, src_1 and dst contradict each other, and dst decides.
TEST(loop_order, continues_along_memory) {
    const auto order = [](std::int64_t middle_bytes, std::int64_t outer_bytes) {
        return order_of(nest_of({{100, {0, 0, 40000, 4}},
                                 {100, {0, 0, middle_bytes, 400}},
                                 {1000, {0, 0, outer_bytes, 40000}}}),
                        {100, 10, 10});
    };
    EXPECT_EQ(order(4, 400), (loops{2, 0, 1}));
    EXPECT_EQ(order(400, 4), (loops{1, 0, 2}));
    EXPECT_EQ(order(0, 4), (loops{1, 0, 2}));
    EXPECT_EQ(order(4, 4), (loops{2, 0, 1}));
    const loop_nest both = nest_of({{1000, {0, 0, 4000, 4}}, {1000, {0, 0, 4, 4000}}});
    EXPECT_EQ(order_of(both, {10, 10}), (loops{1, 0}));
}

// If the tile covers a loop, the loop does not continue in the next tile.
TEST(loop_order, continues_after_whole_rows) {
    EXPECT_EQ(order_of(nest_of({{100, {1, 4, 4, 4}}, {1000, {100, 400, 400, 400}}}), {100, 1}),
              (loops{0, 1}));
}

} // namespace
} // namespace maskwise
