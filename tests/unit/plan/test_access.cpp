// Tests how an operand's elements become items, groups and blocks of the packing kernels. The
// layout affects only speed; test_oracle.cpp tests results.

#include "plan/access.hpp"
#include "plan/select_plan.hpp"
#include "unit/plan/nests.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

using offsets = std::vector<std::int32_t>;

const kernel_table& kernels() {
    return kernel_table_for(isa::scalar);
}

struct step {
    std::int64_t extent;
    std::int64_t bytes;
};

// Returns an operand's access in a one-row tile that covers the whole nest. `steps` lists the
// loops, innermost first.
operand_access access_of(const std::vector<step>& steps, std::int64_t width = 4,
                         std::size_t operand = op_src_0) {
    std::vector<loop_dim> loops;
    for (const step& each : steps) {
        loop_dim next{each.extent, {}};
        next.stride_bytes[operand] = each.bytes;
        loops.push_back(next);
    }
    loop_nest nest = nest_of(loops);
    nest.width_bytes[operand] = width;
    tiling tile;
    tile.extent.fill(1);
    tile.column_loops = nest.rank;
    for (const int d : nest.numbers()) tile[d] = nest[d].extent;
    return make_access(nest, tile, tile.extent, operand, kernels());
}

struct counts {
    std::int64_t items, groups, blocks;
    bool operator==(const counts&) const = default;
};

counts counts_of(const operand_access& access) {
    return {access.layout.items, access.layout.groups, access.layout.blocks};
}

void PrintTo(const counts& numbers, std::ostream* out) {
    *out << numbers.items << " items, " << numbers.groups << " groups, " << numbers.blocks
         << " blocks";
}

// A group has the fewest inner loops that give at least 32 items. Up to 64 items in all form one
// group.
TEST(access, stores_offsets_of_some_tens_of_items) {
    const auto gathered = [](std::vector<step> steps) { return counts_of(access_of(steps)); };
    EXPECT_EQ(gathered({{8, 100}, {3, 1000}, {5, 9000}}), (counts{120, 1, 1}));
    EXPECT_EQ(gathered({{8, 100}, {4, 1000}, {5, 9000}}), (counts{32, 5, 1}));
    EXPECT_EQ(gathered({{8, 100}, {4, 1000}, {2, 9000}}), (counts{64, 1, 1}));
    EXPECT_EQ(gathered({{3, 100}, {11, 1000}, {2, 19000}}), (counts{33, 2, 1}));
    EXPECT_EQ(gathered({{8, 100}, {4, 1000}, {2, 9000}, {7, 50000}}), (counts{32, 2, 7}));
}

TEST(access, computes_offsets_of_items_groups_and_blocks) {
    const operand_access access = access_of({{8, 100}, {4, 1000}, {2, 9000}, {3, 50000}});
    EXPECT_EQ(access.kind, access_kind::gather);
    EXPECT_EQ(access.layout.offsets[9], 1100);
    EXPECT_EQ(access.layout.group_bytes, 9000);
    EXPECT_EQ(access.layout.buffer_group_bytes, 32 * 4);
    EXPECT_EQ(access.layout.block_offsets, (offsets{0, 50000, 100000}));
    EXPECT_EQ(access.buffer_bytes, 8 * 4 * 2 * 3 * 4 + pack_slack_bytes);
    EXPECT_EQ(access.row_bytes, 0);
}

TEST(access, uses_the_step_kernel_for_many_elements_with_one_stride) {
    EXPECT_EQ(access_of({{31, 8}, {5, 900}}).kind, access_kind::gather);
    const operand_access access = access_of({{32, 8}, {5, 900}, {3, 9000}});
    EXPECT_EQ(access.kind, access_kind::step);
    EXPECT_EQ(counts_of(access), (counts{32, 5, 3}));
    EXPECT_EQ(access.layout.offsets, (offsets{0, 8}));
    EXPECT_EQ(access.layout.buffer_group_bytes, 32 * 4);
    EXPECT_EQ(access_of({{32, 8}, {5, 900}}, 4, op_dst).kind, access_kind::scatter);
}

// Up to four copies of each element are made by transposition, if the elements are adjacent.
// Otherwise a register is filled with copies of one element and stored.
TEST(access, transposes_a_few_copies_of_each_element) {
    EXPECT_EQ(access_of({{4, 0}, {40, 4}}).kind, access_kind::transpose);
    const operand_access access = access_of({{5, 0}, {40, 4}});
    EXPECT_EQ(access.kind, access_kind::splat);
    EXPECT_EQ(access.layout.item_bytes, 5 * 4);
    EXPECT_EQ(counts_of(access), (counts{40, 1, 1}));
    EXPECT_EQ(access_of({{4, 0}, {40, 8}}).kind, access_kind::splat);
}

TEST(access, repeats_a_pattern_in_place) {
    const operand_access access = access_of({{6, 4}, {50, 0}});
    EXPECT_EQ(access.kind, access_kind::repeat);
    EXPECT_EQ(access.pattern_bytes, 6 * 4);
    EXPECT_EQ(access.repeats, 50);
    EXPECT_EQ(access.buffer_bytes, 50 * 6 * 4 + pack_slack_bytes);
    EXPECT_EQ(access_of({{6, 4}, {50, 0}, {2, 24}}).kind, access_kind::gather);
    EXPECT_EQ(access_of({{6, 4}, {50, 100}}).kind, access_kind::gather);
}

// An operand that does not move along the outermost loop is packed once, and the packed pattern is
// repeated.
TEST(access, packs_a_pattern_once_and_repeats_it) {
    const operand_access access = access_of({{7, 3000}, {50, 0}});
    EXPECT_EQ(access.kind, access_kind::gather);
    EXPECT_EQ(counts_of(access), (counts{7, 1, 1}));
    EXPECT_EQ(access.repeats, 50);
    EXPECT_EQ(access_of({{7, 3000}, {50, 0}, {2, 4}}).repeats, 1);
}

TEST(access, moves_runs_with_the_widest_unit_that_fits) {
    const auto moves = [](std::int64_t bytes, int unit) {
        const operand_access access = access_of({{bytes, 1}, {50, 100}}, 1);
        EXPECT_EQ(access.layout.item_bytes, bytes);
        return access.pack == find_kernel(kernels().packs, {access_kind::gather, unit}).run;
    };
    EXPECT_TRUE(moves(3, 2));
    EXPECT_TRUE(moves(4, 4));
    EXPECT_TRUE(moves(15, 8));
    EXPECT_TRUE(moves(16, 16));
    EXPECT_TRUE(moves(40, 16));
}

// A group has 40 runs of three bytes, a block has five groups, and there are two blocks.
TEST(access, computes_how_far_windows_reach) {
    const operand_access access = access_of({{3, 1}, {40, 8}, {5, 400}, {2, 9000}}, 1);
    ASSERT_GT(access.layout.windows.count, 0);
    const std::int64_t last_window = 39 * 8 + 2 - 15 / 8 * 8;
    EXPECT_GE(access.windows_reach, 39 * 8 + 3 + 4 * 400 + 9000);
    EXPECT_LE(access.windows_reach, last_window + 16 + 8 + 4 * 400 + 9000);
    const operand_access backwards = access_of({{3, 1}, {40, 8}, {5, -400}, {2, 9000}}, 1);
    EXPECT_EQ(backwards.windows_reach, access.windows_reach - 4 * 400);
}

TEST(access, transposes_even_and_uneven_groups) {
    const operand_access even = access_of({{8, 4000}, {40, 4}});
    EXPECT_EQ(even.kind, access_kind::transpose);
    EXPECT_TRUE(even.layout.even_items);
    EXPECT_EQ(even.layout.buffer_group_bytes, 8 * 4);
    EXPECT_EQ(counts_of(even), (counts{8, 40, 1}));
    const operand_access uneven = access_of({{3, 4000}, {5, 90000}, {40, 4}});
    EXPECT_EQ(uneven.kind, access_kind::transpose);
    EXPECT_FALSE(uneven.layout.even_items);
    EXPECT_EQ(counts_of(uneven), (counts{15, 40, 1}));
}

// Four adjacent elements of 4 bytes fill a register, so more groups would not pay. Two adjacent
// elements do not fill a register.
TEST(access, transposes_no_more_groups_than_pay) {
    EXPECT_EQ(counts_of(access_of({{8, 4096}, {4, 4}, {3, 100000}, {8, 16}})), (counts{8, 4, 24}));
    EXPECT_EQ(counts_of(access_of({{8, 4096}, {2, 4}, {3, 100000}, {8, 8}})), (counts{8, 16, 3}));
}

tensor_desc strided(const dims& extents, const dims& strides_bytes) {
    return {data_type::f32, extents, strides_bytes};
}

// src_1 is 300 column-major matrices of 16 x 16. The hardware's prefetchers suffice if no other
// operand is gathered, scattered or transposed. A source that only repeats a pattern is not
// gathered. A plan of one tile prefetches nothing.
TEST(access, prefetches_transposed_operands_if_another_operand_is_packed) {
    const dims shape{300, 16, 16};
    const tensor_desc column_major = strided(shape, {1024, 4, 64});
    const auto lines = [&](const tensor_desc& src_0) {
        const auto plan = build_plan({dense_desc(data_type::boolean, {}), src_0, column_major,
                                      dense_desc(data_type::f32, shape)},
                                     isa::scalar, INT64_MAX);
        EXPECT_EQ(plan->shapes[0].access[op_src_1].kind, access_kind::transpose);
        return plan->shapes[0].access[op_src_1].lines.size();
    };
    EXPECT_EQ(lines(dense_desc(data_type::f32, shape)), 0U);
    EXPECT_EQ(lines(dense_desc(data_type::f32, {16, 16})), 0U);
    EXPECT_GT(lines(column_major), 0U);
    const tensor_desc few = strided({2, 16, 16}, {1024, 4, 64});
    const auto one_tile = build_plan(
        {dense_desc(data_type::boolean, {}), few, few, dense_desc(data_type::f32, few.extents)},
        isa::scalar, INT64_MAX);
    EXPECT_TRUE(one_tile->shapes[0].access[op_src_1].lines.empty());
}

// A plan that packs no operand prefetches nothing. Other plans prefetch sources. They prefetch dst
// only if dst is scattered, because a partial store first loads its line.
TEST(access, prefetches_lines_if_an_operand_is_packed) {
    const auto lines = [](const tensor_desc& cond, const tensor_desc& source,
                          const tensor_desc& dst) {
        const auto plan = build_plan({cond, source, source, dst}, isa::scalar, INT64_MAX);
        const auto& access = plan->shapes[0].access;
        return std::pair(access[op_src_0].lines.size(), access[op_dst].lines.size());
    };
    const tensor_desc one = dense_desc(data_type::boolean, {});
    const dims rows{2560, 64}, planes{300, 16, 16};
    const tensor_desc apart = strided(rows, {4096, 4});
    EXPECT_EQ(lines(one, apart, apart), std::pair(std::size_t{0}, std::size_t{0}));
    const auto [of_columns, of_rows] = lines(one, strided(rows, {4, 4 * 2560}), apart);
    EXPECT_GT(of_columns, 0U);
    EXPECT_EQ(of_rows, 0U);
    tensor_desc cond = dense_desc(data_type::boolean, planes);
    cond.strides_bytes = {2 * 256, 2, 2 * 16};
    const auto [of_source, of_parts] =
        lines(cond, strided(planes, {1024, 4, 64}), strided(planes, {4096, 256, 8}));
    EXPECT_GT(of_source, 0U);
    EXPECT_GT(of_parts, 0U);
}

} // namespace
} // namespace maskwise
