// Tests bf16 attention, which multiplies bf16 pairs if the instruction set can. Sizes are near tile
// and vector sizes.

#include "attention/run_attention.hpp"
#include "support/attention_case.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace maskwise {
namespace {

using test::attention_case;

// Operands are dense; keys may be transposed.
attention_case bf16_case(const test::extent_list& query, const test::extent_list& key,
                         const test::extent_list& value,
                         test::layout of_keys = test::layout::dense) {
    attention_case problem = test::plain_case(query, key, value, 20);
    test::generator random(21);
    const auto round = [&](test::attention_tensor& tensor, test::layout how) {
        const std::vector<double> numbers = tensor.values;
        lay_out(random, tensor, data_type::bf16, tensor.elements.extents, how);
        tensor.fill(numbers);
    };
    round(problem.query, test::layout::dense);
    round(problem.key, of_keys);
    round(problem.value, test::layout::dense);
    problem.describe();
    return problem;
}

class bf16_attention : public testing::TestWithParam<const kernel_table*> {
protected:
    static void check(const attention_case& problem) {
        const test::output_memory before = test::copy_outputs(problem);
        const auto plan = make_tile_plan(problem.desc, *GetParam());
        const bool extends_base = plan->kernels->target != plan->kernels->base;
        EXPECT_TRUE(plan->in_pairs || !extends_base);
        run_attention(*plan, problem.operands(), nullptr);
        ASSERT_EQ(test::compare(problem, test::expected(problem), before), "")
            << to_string(problem);
    }
};

TEST_P(bf16_attention, computes_any_number_of_rows_and_keys) {
    for (const std::int64_t rows : {1, 2, 4, 5, 15, 16, 17, 31, 32, 33, 64, 65})
        for (const std::int64_t keys : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130}) {
            attention_case problem = bf16_case({1, rows, 8}, {1, keys, 8}, {1, keys, 5});
            for (const auto& rules : test::boundaries) {
                problem.rules = rules;
                check(problem);
            }
        }
}

TEST_P(bf16_attention, computes_any_even_depth) {
    for (const std::int64_t rows : {1, 3, 40}) {
        for (std::int64_t depth = 2; depth <= 64; depth += 2)
            check(bf16_case({1, rows, depth}, {1, 70, depth}, {1, 70, 67 - depth}));
        for (const std::int64_t depth : {80, 128, 256})
            check(bf16_case({1, rows, depth}, {1, 70, depth}, {1, 70, depth}));
    }
}

// docs/decisions/0023-queries-are-columns-of-tiles.md explains the bound.
TEST(bf16_panels, are_narrow_for_up_to_four_queries_on_amx) {
    const kernel_table& table = test::emulated_tables().back();
    for (const std::int64_t rows : {1, 4, 5}) {
        const attention_case problem = bf16_case({1, rows, 8}, {1, 20, 8}, {1, 20, 8});
        const attention_kernels& products = *make_tile_plan(problem.desc, table)->products;
        EXPECT_EQ(&products, rows == 1   ? &table.attention_panel_of_1
                             : rows == 4 ? &table.attention_panel_of_4
                                         : &table.attention);
    }
}

TEST_P(bf16_attention, computes_transposed_keys) {
    for (const std::int64_t depth : {2, 30, 32, 34, 64})
        for (const std::int64_t keys : {1, 16, 63, 65, 130})
            check(bf16_case({2, 33, depth}, {2, keys, depth}, {2, keys, 16},
                            test::layout::transposed));
}

TEST_P(bf16_attention, rounds_weights_in_the_order_of_operators) {
    for (const std::int64_t keys : {3, 64, 200}) {
        attention_case problem = bf16_case({1, 70, 16}, {1, keys, 16}, {1, keys, 24});
        problem.desc.order = attention_order::operators;
        problem.desc.weights_type = data_type::bf16;
        problem.rules = mask_rules{.causal = true};
        check(problem);
    }
}

// Rounding by adding half a unit would turn a NaN with a payload of ones into zero.
TEST_P(bf16_attention, keeps_a_nan_with_any_payload) {
    for (const attention_order order : {attention_order::tiles, attention_order::operators}) {
        attention_case problem = bf16_case({70, 16}, {30, 16}, {30, 24});
        std::vector<double> bias(std::size_t{70} * 30, 0);
        bias[5 * 30 + 7] = std::bit_cast<double>(~std::uint64_t{0});
        test::set_bias(problem, data_type::f32, {70, 30}, bias);
        problem.desc.order = order;
        if (order == attention_order::operators) problem.desc.weights_type = data_type::bf16;
        problem.describe();
        run_attention(*make_tile_plan(problem.desc, *GetParam()), problem.operands(), nullptr);
        const std::vector<double> dst = problem.dst.read();
        for (std::size_t i = 0; i < dst.size(); ++i)
            EXPECT_EQ(std::isnan(dst[i]), i / 24 == 5) << i;
    }
}

// With a window, a panel's keys begin and end anywhere in a tile.
TEST_P(bf16_attention, computes_keys_from_any_place_of_a_tile) {
    for (const std::int64_t below : {0, 1, 5, 17, 40}) {
        attention_case problem = bf16_case({1, 150, 16}, {1, 150, 16}, {1, 150, 24});
        problem.rules.emplace().window = {below, 3};
        check(problem);
    }
}

// On AMX, tiles of deep heads have 128 keys. Rules must give the same result as with narrow tiles.
TEST_P(bf16_attention, computes_wide_tiles) {
    const bool is_amx = GetParam()->target == isa::amx;
    for (const std::int64_t keys : {1, 63, 64, 65, 127, 128, 129, 192, 300}) {
        attention_case problem = bf16_case({1, 200, 16}, {1, keys, 16}, {1, keys, 128});
        EXPECT_EQ(make_tile_plan(problem.desc, *GetParam())->tile_keys, is_amx ? 128 : 64);
        check(problem);
        std::vector<mask_rules> every(4);
        every[0].causal = true;
        every[1].window = {70, 5, 3};
        every[2].chunks = {.size = 50, .earlier = 1};
        every[3].documents = {{{0, 33, 0, keys / 3}, {33, 100, keys / 3, keys - keys / 3}}};
        for (const mask_rules& rules : every) {
            problem.rules = rules;
            check(problem);
        }
    }
}

TEST_P(bf16_attention, uses_narrow_tiles_for_a_mask_in_memory) {
    attention_case problem = bf16_case({1, 40, 16}, {1, 130, 16}, {1, 130, 128});
    test::set_bias(problem, data_type::f32, {40, 130}, std::vector<double>(std::size_t{40} * 130));
    problem.describe();
    EXPECT_EQ(make_tile_plan(problem.desc, *GetParam())->tile_keys, 64);
    check(problem);
}

// Emulated AMX tiles abort if a kernel uses them without a configuration.
TEST(bf16_attention_DeathTest, releases_tiles) {
    const attention_case problem = bf16_case({4, 40, 16}, {4, 70, 16}, {4, 70, 16});
    const auto plan = make_tile_plan(problem.desc, test::emulated_tables().back());
    run_attention(*plan, problem.operands(), nullptr);
    const parallel_loop throwing{2, [](std::int64_t, const auto& body) {
                                     body(0);
                                     throw std::bad_alloc();
                                 }};
    EXPECT_THROW(run_attention(*plan, problem.operands(), &throwing), std::bad_alloc);
    const attention_kernels& kernels = plan->kernels->attention;
    std::vector<float> numbers(64);
    EXPECT_DEATH(kernels.multiply_key_pairs({reinterpret_cast<std::byte*>(numbers.data()), 4, 4, 1,
                                             1, numbers.data(), numbers.data(), nullptr, 1}),
                 "");
}

INSTANTIATE_TEST_SUITE_P(every_target, bf16_attention, testing::ValuesIn(attention_targets()),
                         [](const auto& chosen) { return name_of(chosen.param); });

} // namespace
} // namespace maskwise
