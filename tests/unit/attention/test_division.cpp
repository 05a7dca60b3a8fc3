// Tests how work is divided among workers. Every key of every row must occur once, and slices must
// be balanced.

#include "attention/division.hpp"

#include "attention/run_attention.hpp"
#include "attention/tile_operands.hpp"
#include "base/cpu.hpp"
#include "support/case_generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace maskwise {
namespace {

using counts = std::vector<std::int64_t>;

// The work items in execution order. In every head, row tile i has tiles[i] key tiles.
struct listed {
    listed(const counts& tiles, std::int64_t heads, int workers) {
        const auto row_tiles = std::ssize(tiles);
        items.resize(tiles.size() * static_cast<std::size_t>(heads) +
                     4 * static_cast<std::size_t>(workers));
        shared.resize(tiles.size() * static_cast<std::size_t>(heads));
        work_list list{items.data(), shared.data()};
        is_listed = list_work({heads, row_tiles, heads, tiles.data()}, workers, list);
        EXPECT_LE(list.count, std::ssize(items));
        EXPECT_LE(list.states, 8 * workers);
        items.resize(static_cast<std::size_t>(list.count));
        shared.resize(static_cast<std::size_t>(list.shared_count));
    }
    std::int64_t parts_of(std::int64_t row_tile) const {
        return std::count_if(items.begin(), items.end(),
                             [&](const work_item& item) { return item.row_tile == row_tile; });
    }

    bool is_listed = false;
    std::vector<work_item> items, shared;
};

// Every slice of every row tile and every index of a partial state must occur once.
void expect_complete(const listed& division, std::int64_t row_tiles) {
    std::vector<counts> parts(static_cast<std::size_t>(row_tiles));
    counts states;
    for (const work_item& item : division.items) {
        parts.at(static_cast<std::size_t>(item.row_tile)).push_back(item.part);
        if (item.parts > 1) states.push_back(item.state);
    }
    for (auto& parts_of_tile : parts) {
        counts wanted(parts_of_tile.size());
        std::iota(wanted.begin(), wanted.end(), 0);
        std::sort(parts_of_tile.begin(), parts_of_tile.end());
        EXPECT_FALSE(parts_of_tile.empty());
        EXPECT_EQ(parts_of_tile, wanted);
    }
    std::sort(states.begin(), states.end());
    for (std::size_t i = 0; i < states.size(); ++i)
        EXPECT_EQ(states[i], static_cast<std::int64_t>(i));
    for (const work_item& first : division.shared) {
        EXPECT_EQ(first.part, 0);
        EXPECT_EQ(division.parts_of(first.row_tile), first.parts);
    }
}

TEST(division, only_a_heavy_row_tile_is_split) {
    counts tiles(63, 3);
    tiles[20] = 64;
    const listed work(tiles, 1, 16);
    ASSERT_TRUE(work.is_listed);
    expect_complete(work, 63);
    EXPECT_GE(work.parts_of(20), 3);
    for (std::int64_t row_tile = 0; row_tile < 63; ++row_tile) {
        const bool is_light = row_tile != 20;
        EXPECT_EQ(work.parts_of(row_tile) == 1, is_light) << row_tile;
    }
    EXPECT_EQ(work.shared.size(), 1U);
    EXPECT_EQ(work.items.front().row_tile, 20) << "the heaviest row tile comes first";
}

TEST(division, row_tiles_with_few_keys_are_not_split) {
    EXPECT_TRUE(listed(counts(64, 3), 1, 64).shared.empty());
    EXPECT_TRUE(listed(counts(8, 8), 1, 8).shared.empty());
    EXPECT_TRUE(listed(counts(64, 0), 1, 64).shared.empty());
}

TEST(division, many_row_tiles_are_not_split) {
    EXPECT_TRUE(listed(counts(64, 64), 12, 16).shared.empty());
    EXPECT_FALSE(listed(counts(64, 4), 12, 4).is_listed) << "many row tiles need no order";
}

TEST(division, heavier_items_come_first) {
    counts tiles(64);
    std::iota(tiles.begin(), tiles.end(), 1);
    const listed work(tiles, 12, 64);
    ASSERT_TRUE(work.is_listed);
    expect_complete(work, 12 * 64);
    EXPECT_EQ(work.items.front().row_tile % 64, 63);
    EXPECT_LE(work.items.back().row_tile % 64, 8);
}

TEST(division, row_tiles_are_split_if_they_are_fewer_than_the_workers) {
    const listed work({63}, 8, 64);
    ASSERT_TRUE(work.is_listed);
    expect_complete(work, 8);
    EXPECT_GE(work.items.size(), 64U);
}

TEST(division, every_part_is_listed_once_for_any_costs) {
    test::generator random(1);
    for (int i = 0; i < 300; ++i) {
        const std::int64_t most = std::int64_t{1} << random() % 10;
        counts tiles(1 + random() % 70);
        for (auto& count : tiles) count = test::draw(random, 0, most);
        const std::int64_t heads = test::draw(random, 1, 4);
        const int workers = 2 + static_cast<int>(random() % 100);
        const listed work(tiles, heads, workers);
        if (work.is_listed) expect_complete(work, heads * std::ssize(tiles));
    }
}

// 5 row tiles of 64 key tiles. Each key tile is masked or mixed at random, but every row has an
// unmasked key.
struct random_tiles {
    explicit random_tiles(unsigned seed) {
        attention_desc desc;
        desc.query = desc.key = desc.value = {data_type::f32, {1, 320, 8}};
        desc.key.extents = desc.value.extents = {1, 4096, 8};
        desc.cond = {data_type::boolean, {320, 4096}};
        plan = make_tile_plan(desc, active_isa());
        test::generator random(std::uint64_t{seed});
        cond.resize(320 * 4096);
        for (std::size_t tile = 0; tile < 5 * 64; ++tile)
            for (std::size_t row = 0; random() % 2 == 0 && row < 64; ++row) // makes tiles mixed
                std::fill_n(&cond[(tile / 64 * 64 + row) * 4096 + tile % 64 * 64], 64,
                            std::uint8_t{1});
        for (std::size_t row = 0; row < 320; ++row) cond[row * 4096 + 64] = 1;
        numbers.resize(4096 * 8, 0.5F);
        dst.resize(320 * 8);
        map.resize(static_cast<std::size_t>(plan->mask.tiles()));
        for (std::int64_t i = 0; i < plan->mask.row_tiles; ++i)
            map_row_tile(plan->mask, plan->kernels->attention, cond.data(), i,
                         map.data() + i * plan->mask.key_tiles, nullptr);
    }
    attention_operands operands() {
        return {numbers.data(), numbers.data(), numbers.data(), cond.data(), nullptr, dst.data()};
    }

    std::shared_ptr<const tile_plan> plan;
    std::vector<std::uint8_t> cond;
    std::vector<float> numbers, dst;
    std::vector<tile_mask> map;
};

TEST(division, parts_of_a_row_tile_are_adjacent_and_balanced) {
    random_tiles data(2);
    const attention_operands pointers = data.operands();
    std::vector<float> scratch(static_cast<std::size_t>(data.plan->worker.floats));
    tile_operands operands(*data.plan, pointers, data.plan->numbers, {data.map.data()},
                           scratch.data());
    for (std::int64_t row_tile = 0; row_tile < data.plan->row_tiles(); ++row_tile)
        for (const std::int64_t parts : {2, 3, 7}) {
            operands.bind(0, row_tile);
            const tile_range whole{0, row_tile, 0, data.plan->key_tiles()};
            const std::int64_t computed_tiles = operands.count_computed(operands.kept_part(whole));
            std::int64_t next = 0;
            for (std::int64_t part = 0; part < parts; ++part) {
                tile_range part_range = whole;
                part_range.part = part;
                part_range.parts = parts;
                part_range = operands.kept_part(part_range);
                EXPECT_EQ(part_range.first, next);
                const std::int64_t computed = operands.count_computed(part_range);
                EXPECT_GE(computed, computed_tiles / parts);
                EXPECT_LE(computed, (computed_tiles + parts - 1) / parts);
                next = part_range.last;
            }
            EXPECT_EQ(next, data.plan->key_tiles());
        }
}

TEST(division, workers_compute_each_unmasked_tile_once) {
    for (const int workers : {1, 2, 5, 16, 100}) {
        random_tiles data(3);
        const parallel_loop loop{workers, [](std::int64_t count, const auto& body) {
                                     for (std::int64_t i = 0; i < count; ++i) body(i);
                                 }};
        run_attention(*data.plan, data.operands(), &loop);
        const tile_counts unmasked = count_tiles(*data.plan, data.operands());
        EXPECT_EQ(data.plan->computed_tiles.load(), unmasked.full + unmasked.mixed) << workers;
        for (const float value : data.dst) EXPECT_NEAR(value, 0.5F, 1e-6F);
    }
}

TEST(division, heads_are_alike_without_separate_masks) {
    attention_desc desc;
    desc.query = desc.key = desc.value = {data_type::f32, {2, 6, 128, 8}};
    const auto alike = [&](const mask_rules* rules = nullptr) {
        return heads_alike(*make_tile_plan(desc, active_isa()), rules);
    };
    const mask_rules causal{.causal = true}, padded{.lengths = {1, 2, 3, 4, 5, 6}};
    EXPECT_EQ(alike(), 6);
    EXPECT_EQ(alike(&padded), 6) << "rules are per sequence";
    desc.cond = {data_type::boolean, {2, 1, 128, 128}};
    EXPECT_EQ(alike(), 6);
    desc.cond = {data_type::boolean, {6, 128, 128}};
    EXPECT_EQ(alike(), 1);
    desc.cond = {};
    desc.query = desc.key = desc.value = {data_type::f32, {6, 128, 8}};
    EXPECT_EQ(alike(&padded), 1) << "the only outer dimension counts sequences";
    EXPECT_EQ(alike(&causal), 6) << "all sequences have the same rules";
}

} // namespace
} // namespace maskwise
