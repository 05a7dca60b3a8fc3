// Attention computes exactly the tiles with an unmasked score, for every mask form and thread
// count. The plan counts computed tiles.

#include "attention/run_attention.hpp"
#include "base/cpu.hpp"
#include "support/attention_case.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace maskwise {
namespace {

using test::attention_case;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct unmasked_places {
    std::int64_t rows, keys;
    std::vector<double> unmasked; // 1 or 0, row-major
};

// Each row has one run of unmasked keys. Runs of adjacent rows usually begin at the same key.
unmasked_places random_places(test::generator& random, std::int64_t rows, std::int64_t keys) {
    unmasked_places result{rows, keys,
                           std::vector<double>(static_cast<std::size_t>(rows * keys), 0)};
    std::int64_t first = test::draw(random, 0, keys - 1);
    for (std::int64_t r = 0; r < rows; ++r) {
        if (test::one_in(random, 10)) first = test::draw(random, 0, keys - 1);
        const std::int64_t count = std::min(keys - first, test::draw(random, 1, 90));
        std::fill_n(result.unmasked.begin() + r * keys + first, count, 1);
    }
    return result;
}

unmasked_places below_boundary(std::int64_t rows, std::int64_t keys) {
    unmasked_places result{rows, keys,
                           std::vector<double>(static_cast<std::size_t>(rows * keys), 0)};
    for (std::int64_t r = 0; r < rows; ++r)
        std::fill_n(result.unmasked.begin() + r * keys, std::min(keys, r + 1), 1);
    return result;
}

std::int64_t tiles_with_an_unmasked_place(const unmasked_places& places, const tile_plan& plan) {
    std::int64_t tiles = 0;
    for (std::int64_t r = 0; r < places.rows; r += plan.tile_rows)
        for (std::int64_t k = 0; k < places.keys; k += plan.tile_keys) {
            bool any = false;
            for (std::int64_t i = r; i < std::min(places.rows, r + plan.tile_rows); ++i)
                for (std::int64_t j = k; j < std::min(places.keys, k + plan.tile_keys); ++j)
                    any =
                        any || places.unmasked[static_cast<std::size_t>(i * places.keys + j)] != 0;
            tiles += any ? 1 : 0;
        }
    return tiles * plan.heads;
}

enum class mask_form {
    cond,
    masking_cond,
    infinite,
    lowest,
    large,
    f16_lowest,
    filled_cond,
    infinite_beside_cond,
    low, // so low that a bound from the norms of queries and keys skips the tile
    boundary
};

attention_case masked_case(const unmasked_places& places, mask_form form) {
    const std::int64_t heads = 2;
    attention_case problem = test::plain_case({heads, places.rows, 8}, {heads, places.keys, 8},
                                              {heads, places.keys, 5}, 3);
    const test::extent_list shape{places.rows, places.keys};
    const auto set_bias = [&](data_type type, double masked) {
        std::vector<double> bias;
        for (const double unmasked : places.unmasked) bias.push_back(unmasked != 0 ? 0 : masked);
        test::set_bias(problem, type, shape, bias);
    };
    std::vector<double> drop;
    for (const double unmasked : places.unmasked) drop.push_back(1 - unmasked);
    switch (form) {
    case mask_form::filled_cond:
        problem.desc.fill = -1e9F;
        [[fallthrough]];
    case mask_form::cond:
        test::set_cond(problem, shape, places.unmasked);
        break;
    case mask_form::masking_cond:
        test::set_cond(problem, shape, drop);
        problem.desc.cond_masks = true;
        break;
    case mask_form::infinite:
        set_bias(data_type::f32, -infinity);
        break;
    case mask_form::infinite_beside_cond:
        set_bias(data_type::f32, -infinity);
        test::set_cond(problem, shape, std::vector<double>(places.unmasked.size(), 1));
        problem.desc.fill = -3;
        break;
    case mask_form::lowest:
        set_bias(data_type::f32, std::numeric_limits<float>::lowest());
        break;
    case mask_form::large:
        set_bias(data_type::f32, -1e30);
        break;
    case mask_form::low:
        set_bias(data_type::f32, -1e4);
        break;
    case mask_form::f16_lowest:
        set_bias(data_type::f16, -65504);
        break;
    case mask_form::boundary:
        problem.rules = mask_rules{.causal = true};
        break;
    }
    return problem;
}

constexpr mask_form forms_of_places[] = {mask_form::cond,        mask_form::masking_cond,
                                         mask_form::infinite,    mask_form::lowest,
                                         mask_form::large,       mask_form::f16_lowest,
                                         mask_form::filled_cond, mask_form::infinite_beside_cond};

void expect_work(const unmasked_places& places, mask_form form, attention_order order,
                 const kernel_table* target) {
    attention_case problem = masked_case(places, form);
    problem.desc.order = order;
    const auto plan = make_tile_plan(problem.desc, *target);
    const std::int64_t expected = tiles_with_an_unmasked_place(places, *plan);
    for (const int threads : {1, 2, 16, 64}) {
        const parallel_loop loop{threads, [](std::int64_t count, const auto& body) {
                                     for (std::int64_t i = 0; i < count; ++i) body(i);
                                 }};
        const std::int64_t before = plan->computed_tiles;
        run_attention(*plan, problem.operands(), &loop);
        EXPECT_EQ(plan->computed_tiles - before, expected)
            << "form " << static_cast<int>(form) << ", " << places.rows << 'x' << places.keys
            << ", threads " << threads << ", " << to_string(*plan);
    }
}

TEST(attention_cost, follows_the_mask_in_every_form) {
    test::generator random(test::base_seed());
    for (const kernel_table* target : attention_targets())
        for (const auto order : {attention_order::tiles, attention_order::operators})
            for (const std::int64_t rows : {1, 3, 16, 20, 64, 77, 130})
                for (const std::int64_t keys : {50, 64, 700, 2100}) {
                    const unmasked_places places = random_places(random, rows, keys);
                    for (const mask_form form : forms_of_places)
                        expect_work(places, form, order, target);
                    if (order == attention_order::tiles && rows > 64)
                        expect_work(places, mask_form::low, order, target);
                    expect_work(below_boundary(rows, keys), mask_form::boundary, order, target);
                }
}

// One-query heads that share keys, by broadcast or by grouping, read the keys once.
TEST(attention_cost, counts_shared_keys_once) {
    for (const std::int64_t key_heads : {1, 2}) {
        attention_case problem =
            test::plain_case({3, 8, 1, 8}, {3, key_heads, 640, 8}, {3, key_heads, 640, 5}, 3);
        problem.desc.grouped_queries = key_heads > 1;
        const auto plan = make_tile_plan(problem.desc, active_isa());
        run_attention(*plan, problem.operands(), nullptr);
        EXPECT_EQ(plan->computed_tiles, 3 * key_heads * plan->key_tiles()) << to_string(*plan);
    }
}

// Heads that share keys and have a few queries each read the keys once, with a mask per head or one
// shared mask.
TEST(attention_cost, counts_shared_keys_with_masks_once) {
    test::generator random(test::base_seed());
    for (const kernel_table* target : attention_targets())
        for (const std::int64_t mask_heads : {1, 8})
            for (const bool is_bias : {false, true}) {
                attention_case problem =
                    test::plain_case({3, 8, 4, 8}, {3, 2, 640, 8}, {3, 2, 640, 5}, 3);
                problem.desc.grouped_queries = true;
                const unmasked_places places = random_places(random, mask_heads * 4, 640);
                const test::extent_list shape{mask_heads, 4, 640};
                if (is_bias)
                    test::set_bias(problem, data_type::f32, shape, places.unmasked);
                else
                    test::set_cond(problem, shape, std::vector<double>(places.unmasked.size(), 1));
                const auto plan = make_tile_plan(problem.desc, *target);
                run_attention(*plan, problem.operands(), nullptr);
                EXPECT_EQ(plan->computed_tiles, 3 * 2 * plan->key_tiles()) << to_string(*plan);
            }
}

// With ALiBi, only a band of keys around the diagonal has weight. A smaller slope widens the band.
TEST(attention_cost, follows_a_bias_that_falls_with_the_distance) {
    constexpr std::int64_t length = 640;
    std::int64_t before = 0;
    const auto set_alibi = [](attention_case& problem, double slope, bool by_rules) {
        if (by_rules) {
            problem.rules = mask_rules{.slopes = {static_cast<float>(slope)}};
            return;
        }
        std::vector<double> bias;
        for (std::int64_t i = 0; i < length * length; ++i)
            bias.push_back(-slope * static_cast<double>(std::abs(i / length - i % length)));
        test::set_bias(problem, data_type::f32, {length, length}, bias);
    };
    for (const auto& [slope, by_rules] : {std::pair{2.0, false},
                                          {2.0, true},
                                          {0.5, false},
                                          {0.5, true},
                                          {0.01, false},
                                          {0.01, true}}) {
        attention_case problem =
            test::plain_case({1, length, 8}, {1, length, 8}, {1, length, 5}, 3);
        set_alibi(problem, slope, by_rules);
        const auto plan = make_tile_plan(problem.desc, active_isa());
        const test::output_memory outputs = test::copy_outputs(problem);
        run_attention(*plan, problem.operands(), nullptr);
        EXPECT_EQ(test::compare(problem, test::expected(problem), outputs), "");
        if (by_rules) {
            EXPECT_EQ(plan->computed_tiles, before) << slope;
        } else {
            EXPECT_GT(plan->computed_tiles, before) << slope;
        }
        before = plan->computed_tiles;
        if (slope == 2.0) {
            EXPECT_LE(before, 10 + 2 * 9 + 2 * 8);
        }
    }
    EXPECT_EQ(before, 100);
}

// A fully masked row needs all keys if the bias is finite, and no key if the bias is -infinity.
TEST(attention_cost, includes_all_keys_or_none_for_fully_masked_rows) {
    unmasked_places places{70, 640, std::vector<double>(70 * 640, 0)};
    for (const auto& [form, share] : {std::pair{mask_form::infinite, 0}, {mask_form::lowest, 1}}) {
        const attention_case problem = masked_case(places, form);
        const auto plan = make_tile_plan(problem.desc, active_isa());
        run_attention(*plan, problem.operands(), nullptr);
        EXPECT_EQ(plan->computed_tiles,
                  share * plan->heads * plan->row_tiles() * plan->key_tiles());
    }
}

} // namespace
} // namespace maskwise
