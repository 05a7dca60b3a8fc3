// Tests the sizes of tiles and their prefetched lines, which affect only speed. A piece is a
// contiguous run of an operand's bytes in a tile.

#include "plan/access.hpp"
#include "plan/tiling.hpp"
#include "unit/plan/nests.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

using offsets = std::vector<std::int32_t>;

// src_1 and dst have `rows` x `columns` f32 elements. src_1 is column-major. cond and src_0 are
// scalars.
loop_nest transposed(std::int64_t rows, std::int64_t columns) {
    return nest_of({{columns, {0, 0, 4 * rows, 4}}, {rows, {0, 0, 4, 4 * columns}}});
}

tile_extents extents(std::int64_t inner, std::int64_t outer) {
    return extents_of({inner, outer});
}

// src_1 and dst have 4 MB each. The box has the maximum size, 32 KB. dst's pieces (512 bytes) are
// longer than src_1's (256 bytes), because a store to a part of a line also loads the line.
TEST(box, holds_long_pieces_of_operands_in_memory) {
    EXPECT_EQ(choose_box(transposed(1024, 1024)), extents(128, 64));
}

// src_1 and dst have 160 KB each. The box has whole lines of src_1 and at most 2048 elements. So
// dst's 200 columns are cut into two chunks of whole lines.
TEST(box, holds_whole_lines_of_operands_in_l2) {
    EXPECT_EQ(choose_box(transposed(200, 200)), extents(112, 16));
}

// src_0 and dst have 8 MB. The column-major cond has 100 KB. If dst's rows end within cache lines,
// dst's pieces grow first, to at most 496 columns. So the 1001 columns are cut into three chunks.
TEST(box, holds_longer_pieces_of_dst_if_they_end_within_lines) {
    const auto box_of = [](std::int64_t columns) {
        const std::int64_t row = 4 * columns;
        return choose_box(nest_of({{columns, {100, 4, 0, 4}},
                                   {100, {1, row, 0, row}},
                                   {20, {0, 100 * row, 0, 100 * row}}}));
    };
    EXPECT_EQ(box_of(1008), extents(128, 64));
    EXPECT_EQ(box_of(1001), extents(336, 16));
}

// src_1 and dst have 16 KB each and fit L1, so only dst shapes the box.
TEST(box, fills_up_along_dst_for_operands_in_l1) {
    EXPECT_EQ(choose_box(transposed(64, 64)), extents(64, 32));
}

// Returns the tile's extent along the outermost loop. Along this loop, src_0 has pieces of 32
// bytes, `step` bytes apart.
std::int64_t pieces_of_tile(std::int64_t step) {
    return choose_box(
        nest_of({{1000, {0, 1 << 20, 0, 4}}, {8, {0, 4, 0, 4000}}, {64, {0, step, 0, 32000}}}))[2];
}

// src_0 has 1000 pieces of two cache lines each, 128 KB in all. The box has one line of each piece.
TEST(box, reaches_no_further_than_whole_lines) {
    const loop_nest nest =
        nest_of({{1000, {0, 128, 0, 4}}, {16, {0, 4, 0, 4000}}, {2, {0, 64, 0, 64000}}});
    EXPECT_EQ(choose_box(nest), extents_of({128, 16, 1}));
}

// The offset of the last element's last byte must also fit 32 bits.
TEST(box, ends_where_offsets_end) {
    const auto rows_of_tile = [](std::int64_t apart) {
        return choose_box(nest_of({{8, {1, 4, 4, 4}}, {2, {8, apart, 32, 32}}}))[1];
    };
    EXPECT_EQ(rows_of_tile((std::int64_t{1} << 31) - 64), 2);
    EXPECT_EQ(rows_of_tile((std::int64_t{1} << 31) - 30), 1);
}

// The box cuts the three loops along which dst, src_0 and src_1 are contiguous. cond is
// contiguous along the fourth loop, of which the box has all iterations or one.
TEST(box, cuts_three_loops) {
    const auto tile_of = [](std::int64_t last) {
        loop_nest nest = nest_of({{41, {last, 656, 656, 16}},
                                  {41, {41 * last, 16, 26896, 656}},
                                  {41, {1681 * last, 26896, 16, 26896}},
                                  {last, {1, 1102736, 1102736, 1102736}}});
        nest.width_bytes = {1, 16, 16, 16};
        return choose_box(nest);
    };
    EXPECT_EQ(tile_of(4)[3], 4);
    EXPECT_EQ(tile_of(400)[3], 1);
}

// Two groups of eight elements, 1.5 GB apart, fit the 2 GB that offsets can span.
TEST(box, spans_as_much_as_offsets_can) {
    const loop_nest nest = nest_of({{2, {0, 0, 1500000000, 4}}, {8, {0, 0, 4, 8}}});
    EXPECT_EQ(choose_box(nest), extents(2, 8));
}

TEST(box, reaches_over_gaps_of_a_line) {
    EXPECT_EQ(pieces_of_tile(96), 4); // 32 + 3 * 96 bytes exceed 256
    EXPECT_EQ(pieces_of_tile(100), 1);
}

// Two elements 2 GB apart do not fit one box, because offsets have 32 bits.
TEST(box, spans_no_more_than_offsets_can) {
    loop_nest nest = transposed(64, 64);
    nest.loops[0].stride_bytes[op_src_1] = std::int64_t{1} << 31;
    EXPECT_EQ(choose_box(nest)[0], 1);
    nest.loops[0].stride_bytes[op_src_1] = (std::int64_t{1} << 31) / 8;
    EXPECT_LE((choose_box(nest)[0] - 1) * nest[0].stride_bytes[op_src_1], INT32_MAX);
    EXPECT_GT(choose_box(nest)[0], 1);
}

// Returns src_0's prefetched lines for a gathered tile of `inner` x `outer` elements with these
// strides in bytes.
offsets prefetched(std::int64_t inner, std::int64_t inner_bytes, std::int64_t outer,
                   std::int64_t outer_bytes) {
    loop_nest nest = transposed(outer, inner);
    nest.loops[0].stride_bytes[op_src_0] = inner_bytes;
    nest.loops[1].stride_bytes[op_src_0] = outer_bytes;
    return lines_of_tile(nest, extents(inner, outer), op_src_0, access_kind::gather, false);
}

// Returns offsets that touch every cache line of the pieces at any alignment. Pieces begin `apart`
// bytes apart.
offsets lines_of_pieces(std::int32_t pieces, std::int32_t apart, std::int32_t bytes) {
    offsets result;
    for (std::int32_t piece = 0; piece < pieces; ++piece) {
        for (std::int32_t offset = 0; offset < bytes - 1; offset += 64)
            result.push_back(piece * apart + offset);
        result.push_back(piece * apart + bytes - 1);
    }
    return result;
}

offsets lines_of(std::int32_t bytes) {
    return lines_of_pieces(1, 0, bytes);
}

TEST(lines_of_tile, are_all_lines_of_separate_pieces) {
    EXPECT_EQ(prefetched(64, 4, 16, 4096), lines_of_pieces(16, 4096, 256));
    EXPECT_EQ(prefetched(16, 4096, 64, 4), lines_of_pieces(16, 4096, 256)); // the loops swapped
}

// Pieces with gaps of at most one line count as one piece.
TEST(lines_of_tile, count_pieces_with_small_gaps_as_one) {
    EXPECT_EQ(prefetched(4, 512 + 64, 128, 4), lines_of(3 * 576 + 512));
    EXPECT_EQ(prefetched(4, 512 + 68, 128, 4), lines_of_pieces(4, 580, 512));
}

TEST(lines_of_tile, leave_predictable_accesses_to_the_hardware) {
    EXPECT_EQ(prefetched(128, 4, 32, 512), offsets());          // one piece from end to end
    EXPECT_EQ(prefetched(32, 512, 128, 4), lines_of(256 * 64)); // the same piece, back and forth
    EXPECT_EQ(prefetched(3, 64, 16, 4), offsets());             // back and forth over three lines
    EXPECT_EQ(prefetched(4, 64, 16, 4), lines_of(256));         // back and forth over four lines
    EXPECT_EQ(prefetched(4, 64, 16, 192), offsets());           // begins at the last piece's end
    EXPECT_EQ(prefetched(64, -4, 16, 4096), offsets());         // backwards
    EXPECT_EQ(prefetched(64, 4, 1, 4096), offsets());           // a single piece
}

TEST(lines_of_tile, are_few_and_hold_several_elements_each) {
    EXPECT_EQ(prefetched(64, 512, 128, 4), lines_of(512 * 64));
    EXPECT_EQ(prefetched(65, 512, 128, 4), offsets()); // L1 also holds the current tile
    EXPECT_EQ(prefetched(16, 4096, 8, 4), lines_of_pieces(16, 4096, 32)); // 8 elements per line
    EXPECT_EQ(prefetched(16, 4096, 7, 4), offsets());
}

} // namespace
} // namespace maskwise
