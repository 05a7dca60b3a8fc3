// Tests which nests are tiled by whole rows or by boxes, and how tiles write dst. Tilings affect
// only speed.

#include "plan/tiling.hpp"
#include "unit/plan/nests.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

// All operands are contiguous along the innermost loop. Only dst moves along the outer loop, by
// `row_bytes`.
tiling rows_of(std::int64_t columns, std::int64_t rows, std::int64_t row_bytes) {
    return choose_tiling(nest_of({{columns, {1, 4, 4, 4}}, {rows, {0, 0, 0, row_bytes}}}));
}

TEST(tiling, has_whole_rows_of_a_kilobyte) {
    EXPECT_EQ(rows_of(256, 640, 1028).extent, extents_of({256, 64}));
    EXPECT_LT(elements_of(rows_of(255, 640, 1024).extent), 4096); // a box
}

// Rows of 256 bytes or more are tiled whole if they consist of whole lines.
TEST(tiling, has_whole_rows_of_few_whole_lines) {
    EXPECT_EQ(rows_of(64, 2560, 320).extent, extents_of({64, 256}));
    EXPECT_LT(elements_of(rows_of(48, 2560, 320).extent), 4096);
    EXPECT_LT(elements_of(rows_of(64, 2560, 324).extent), 4096);
    EXPECT_LT(elements_of(rows_of(72, 2560, 320).extent), 4096);
}

TEST(tiling, cuts_one_loop_in_even_chunks_of_whole_lines) {
    const auto tile_of = [](std::int64_t extent, std::int64_t width) {
        loop_nest nest = nest_of({{extent, {1, width, width, width}}});
        nest.width_bytes = {1, width, width, width};
        return choose_tiling(nest)[0];
    };
    EXPECT_EQ(tile_of(16384, 4), 16384);
    EXPECT_EQ(tile_of(16385, 4), 8256);
    EXPECT_EQ(tile_of(16384, 8), 8192); // 64 KB
    EXPECT_EQ(tile_of(16384, 1), 16384);
    EXPECT_EQ(tile_of(10, 4), 10);
}

TEST(tiling, has_no_loops_for_an_empty_nest) {
    const tiling tile = choose_tiling(nest_of({}));
    EXPECT_EQ(elements_of(tile.extent), 1);
    EXPECT_EQ(tile.row_loop, -1);
}

// Long rows stay separate, so that operands broadcast to all rows are read in place.
TEST(tiling, keeps_long_rows_separate) {
    const tiling tile = choose_tiling(nest_of({{256, {1, 4, 4, 4}}, {64, {0, 1024, 1024, 1024}}}));
    EXPECT_EQ(tile.column_loops, 1);
    EXPECT_EQ(tile.row_loop, 1);
    EXPECT_FALSE(tile.scatters);
}

// The tile is a box, because src_1 is transposed. dst's short rows are adjacent and form one row of
// the tile.
TEST(tiling, makes_one_row_of_short_rows) {
    const tiling tile = choose_tiling(nest_of({{32, {1, 4, 256, 4}}, {64, {32, 128, 4, 128}}}));
    EXPECT_EQ(tile.column_loops, 2);
    EXPECT_EQ(tile.row_loop, -1);
    EXPECT_FALSE(tile.scatters);
}

TEST(tiling, makes_one_row_of_three_dense_loops) {
    const tiling tile = choose_tiling(
        nest_of({{64, {1, 4, 128, 4}}, {4, {64, 256, 32, 256}}, {8, {256, 1024, 4, 1024}}}));
    EXPECT_EQ(tile.extent, extents_of({64, 4, 8}));
    EXPECT_EQ(tile.column_loops, 3);
    EXPECT_EQ(tile.row_loop, -1);
    EXPECT_FALSE(tile.scatters);
}

// dst is written from a buffer if dst's contiguous runs are shorter than a cache line, or if
// several loops lead from run to run.
TEST(tiling, scatters_runs_shorter_than_a_line) {
    const auto tile_of = [](std::int64_t columns) {
        return choose_tiling(nest_of({{columns, {1, 4, 4, 4}}, {16, {0, 0, 0, 400}}}));
    };
    EXPECT_TRUE(tile_of(15).scatters);
    EXPECT_EQ(tile_of(15).column_loops, 2);
    EXPECT_EQ(tile_of(15).row_loop, -1);
    EXPECT_FALSE(tile_of(16).scatters);
    EXPECT_EQ(tile_of(16).column_loops, 1);
    EXPECT_EQ(tile_of(16).row_loop, 1);
}

TEST(tiling, scatters_over_more_than_one_loop) {
    const tiling tile = choose_tiling(
        nest_of({{32, {1, 4, 4, 4}}, {5, {32, 128, 128, 256}}, {7, {160, 640, 640, 2000}}}));
    EXPECT_TRUE(tile.scatters);
    EXPECT_EQ(tile.column_loops, 3);
}

} // namespace
} // namespace maskwise
