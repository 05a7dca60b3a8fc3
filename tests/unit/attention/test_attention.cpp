// Compares attention with its definition in double precision, on every instruction set of this
// machine.

#include "attention/run_attention.hpp"
#include "base/cpu.hpp"
#include "support/attention_case.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace maskwise {
namespace {

using test::attention_case;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double lowest = std::numeric_limits<float>::lowest();

// Returns "" if dst and statistics are as expected.
std::string run_and_compare(const attention_case& problem, const test::wanted_attention& wanted,
                            const kernel_table* target) {
    const test::output_memory before = test::copy_outputs(problem);
    run_attention(*make_tile_plan(problem.desc, *target), problem.operands(), nullptr);
    return test::compare(problem, wanted, before);
}

void check(const attention_case& problem, const kernel_table* target) {
    ASSERT_EQ(run_and_compare(problem, test::expected(problem), target), "") << to_string(problem);
}

TEST(attention, agrees_with_double_precision_on_random_cases) {
    const std::uint64_t seed = test::base_seed();
    for (std::uint64_t i = 0; i < 400; ++i) {
        test::generator random(seed + i);
        const attention_case problem = test::make_attention_case(random);
        const test::wanted_attention wanted = test::expected(problem);
        for (const kernel_table* target : attention_targets())
            ASSERT_EQ(run_and_compare(problem, wanted, target), "")
                << "seed " << seed + i << ' ' << name_of(target) << ' ' << to_string(problem);
    }
}

class attention_test : public testing::TestWithParam<const kernel_table*> {};

TEST_P(attention_test, computes_any_number_of_rows_and_keys) {
    for (const std::int64_t rows : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129})
        for (const std::int64_t keys : {1, 5, 6, 7, 11, 12, 13, 63, 64, 65, 130}) {
            attention_case problem = test::plain_case({2, rows, 8}, {2, keys, 8}, {2, keys, 5}, 3);
            for (const auto& rules : test::boundaries) {
                problem.rules = rules;
                check(problem, GetParam());
            }
        }
}

TEST_P(attention_test, computes_any_depth) {
    for (std::int64_t depth = 1; depth <= 50; ++depth)
        check(test::plain_case({1, 40, depth}, {1, 70, depth}, {1, 70, 51 - depth}, 4), GetParam());
    for (const std::int64_t depth : {64, 80, 96, 128, 256, 300})
        check(test::plain_case({1, 40, depth}, {1, 70, depth}, {1, 70, depth}, 5), GetParam());
    for (const std::int64_t depth : {512, 513, 700})
        check(test::plain_case({1, 2, depth}, {1, 70, depth}, {1, 70, 3}, 15), GetParam());
}

// Keys grow by `step` per tile. The largest step exceeds the range of f32's exponential.
TEST_P(attention_test, rescales_its_sums_to_a_new_maximum) {
    for (const double step : {1.0, 30.0, 200.0}) {
        attention_case problem = test::plain_case({1, 33, 4}, {1, 500, 4}, {1, 500, 7}, 6);
        std::vector<double> keys;
        for (std::size_t i = 0; i < problem.key.values.size(); ++i)
            keys.push_back(problem.key.values[i] + step * static_cast<double>(i / (4 * 64)));
        problem.key.fill(keys);
        problem.desc.scale = 0.25F;
        check(problem, GetParam());
    }
}

// Scale times query overflows or underflows f32, but scale times score does neither.
TEST_P(attention_test, scales_queries_of_any_size) {
    for (const auto& [scale, query] : {std::pair{1e38F, 10.0}, {1e-30F, 1e-12}, {-1e38F, 10.0}}) {
        attention_case problem = test::plain_case({2, 20, 16}, {2, 150, 16}, {2, 150, 9}, 14);
        const auto fill = [](test::attention_tensor& tensor, double factor) {
            std::vector<double> values = tensor.values;
            for (double& value : values) value *= factor;
            tensor.fill(values);
        };
        fill(problem.query, query);
        fill(problem.key, 1 / (query * std::abs(static_cast<double>(scale))));
        problem.desc.scale = scale;
        check(problem, GetParam());
    }
}

// Masks one row of a tile, and all rows of another tile.
TEST_P(attention_test, masks_full_rows) {
    for (const bool inf_as_zero : {true, false}) {
        attention_case problem = test::plain_case({2, 100, 16}, {2, 150, 16}, {2, 150, 16}, 7);
        std::vector<double> unmasked(100 * 150, 1);
        for (std::size_t i = 0; i < unmasked.size(); ++i)
            if (i / 150 == 3 || i / 150 >= 64) unmasked[i] = 0;
        test::set_cond(problem, {100, 150}, unmasked);
        problem.desc.inf_as_zero = inf_as_zero;
        check(problem, GetParam());
        const std::vector<double> dst = problem.dst.read();
        EXPECT_EQ(std::isnan(dst[16 * 3]), !inf_as_zero);
        EXPECT_EQ(std::isnan(dst[16 * 99]), !inf_as_zero);
    }
}

// With a finite fill, masked keys have weight in fully masked rows and may have weight in others.
TEST_P(attention_test, gives_a_finite_fill_its_weight) {
    for (const float fill : {-1e30F, -90.0F, -3.0F, 0.0F, 4.0F}) {
        attention_case problem = test::plain_case({1, 70, 16}, {1, 400, 16}, {1, 400, 9}, 8);
        std::vector<double> unmasked(70 * 400, 0);
        for (std::size_t i = 0; i < unmasked.size(); ++i)
            if (i / 400 < 60 && i % 400 >= 100 && i % 400 < 140) unmasked[i] = 1;
        test::set_cond(problem, {70, 400}, unmasked);
        problem.desc.fill = fill;
        check(problem, GetParam());
        problem.rules = mask_rules{.causal = true};
        check(problem, GetParam());
    }
}

// Keys and values after the first 128 are in guard pages, so computing a masked tile crashes.
TEST_P(attention_test, does_not_touch_masked_tiles) {
    enum class mask { causal, cond, infinite_bias, lowest_bias };
    for (const mask by : {mask::causal, mask::cond, mask::infinite_bias, mask::lowest_bias}) {
        attention_case problem = test::plain_case({1, 100, 16}, {1, 128, 16}, {1, 128, 16}, 9);
        const test::wanted_attention wanted = [&] {
            if (by == mask::causal) problem.rules = mask_rules{.causal = true};
            return test::expected(problem);
        }();
        test::generator random(1);
        for (test::attention_tensor* tensor : {&problem.key, &problem.value}) {
            test::guarded_buffer exact(tensor->memory.size(), test::guarded_buffer::edge::back);
            std::ranges::copy(tensor->memory.bytes(), exact.data());
            tensor->memory = std::move(exact);
            tensor->elements.data = tensor->memory.data();
            tensor->elements.extents[1] = 512;
        }
        std::vector<double> unmasked(512, 0),
            bias(512, by == mask::lowest_bias ? lowest : -infinity);
        std::fill_n(unmasked.begin(), 128, 1);
        std::fill_n(bias.begin(), 128, 0);
        problem.describe();
        if (by == mask::cond) test::set_cond(problem, {512}, unmasked);
        if (by == mask::infinite_bias || by == mask::lowest_bias)
            test::set_bias(problem, data_type::f32, {512}, bias);
        EXPECT_EQ(run_and_compare(problem, wanted, GetParam()), "");
    }
}

// A bias masks whole rows. f32's lowest number absorbs the rows' scores; f16's does not.
TEST_P(attention_test, computes_weights_of_rows_that_a_bias_masks) {
    constexpr std::pair<data_type, double> biases[] = {
        {data_type::f32, lowest}, {data_type::f32, -infinity}, {data_type::f16, -65504}};
    for (const auto& [type, masked] : biases) {
        attention_case problem = test::plain_case({1, 100, 16}, {1, 300, 16}, {1, 300, 16}, 14);
        std::vector<double> bias(100 * 300, 0);
        for (std::size_t i = 0; i < bias.size(); ++i)
            if (i / 300 == 5 || i / 300 >= 64 || i % 300 >= 130) bias[i] = masked;
        test::set_bias(problem, type, {100, 300}, bias);
        problem.desc.scale = 20;
        problem.desc.inf_as_zero = false;
        check(problem, GetParam());
        EXPECT_EQ(std::isnan(problem.dst.read()[16 * 99]), masked == -infinity);
    }
}

TEST_P(attention_test, replaces_nan_by_zero) {
    attention_case problem = test::plain_case({1, 70, 16}, {1, 90, 16}, {1, 90, 16}, 15);
    std::vector<double> queries = problem.query.values, unmasked(70 * 90, 1);
    queries[16 * 20 + 5] = nan;
    queries[16 * 30] = infinity; // infinite scores of both signs
    problem.query.fill(queries);
    std::fill_n(unmasked.begin() + 40 * 90, 90, 0);
    test::set_cond(problem, {70, 90}, unmasked);
    problem.desc.nan_as_zero = true;
    check(problem, GetParam());
    const std::vector<double> dst = problem.dst.read();
    for (std::size_t i = 0; i < dst.size(); ++i)
        ASSERT_EQ(dst[i] == 0, i / 16 == 20 || i / 16 == 30 || i / 16 == 40) << i;
}

TEST_P(attention_test, a_nan_stays_in_its_row) {
    attention_case problem = test::plain_case({1, 70, 16}, {1, 90, 16}, {1, 90, 16}, 10);
    std::vector<double> queries = problem.query.values;
    queries[16 * 20 + 5] = nan;
    problem.query.fill(queries);
    run_attention(*make_tile_plan(problem.desc, *GetParam()), problem.operands(), nullptr);
    const std::vector<double> dst = problem.dst.read();
    for (std::size_t i = 0; i < dst.size(); ++i) ASSERT_EQ(std::isnan(dst[i]), i / 16 == 20) << i;
    const std::vector<double> statistics = problem.statistics.read();
    for (std::size_t i = 0; i < statistics.size(); ++i)
        ASSERT_EQ(std::isnan(statistics[i]), i == 20) << i;
}

// The masked keys are NaN and share tiles with unmasked keys.
TEST_P(attention_test, ignores_masked_keys) {
    attention_case problem = test::plain_case({1, 40, 16}, {1, 90, 16}, {1, 90, 16}, 11);
    std::vector<double> unmasked(90, 1);
    unmasked[7] = unmasked[80] = 0;
    test::set_cond(problem, {90}, unmasked);
    const test::wanted_attention wanted = test::expected(problem);
    std::vector<double> keys = problem.key.values;
    for (std::size_t d = 0; d < 16; ++d) keys[16 * 7 + d] = keys[16 * 80 + d] = nan;
    problem.key.fill(keys);
    EXPECT_EQ(run_and_compare(problem, wanted, GetParam()), "");
}

// Each head has one query, as in decoding. Heads share keys by grouping or broadcast, or have
// separate keys.
TEST_P(attention_test, shares_keys_among_heads_of_one_query) {
    for (const auto& rules : test::boundaries)
        for (const std::int64_t key_heads : {1, 2, 6}) {
            attention_case problem = test::plain_case({2, 6, 1, 16}, {2, key_heads, 200, 16},
                                                      {2, key_heads, 200, 8}, 13);
            std::vector<double> unmasked(6 * 200, 1);
            for (std::size_t i = 0; i < unmasked.size(); ++i)
                unmasked[i] = i % 7 == 3 || i / 200 == 4;
            test::set_cond(problem, {6, 1, 200}, unmasked);
            problem.desc.grouped_queries = key_heads == 2;
            problem.rules = rules;
            check(problem, GetParam());
        }
}

// Heads share keys and cond. Each head has a few queries, so a panel holds several heads or ends
// within a head.
TEST_P(attention_test, shares_keys_among_heads_with_one_mask) {
    test::generator random(test::base_seed());
    attention_case problem;
    // Puts the tensor next to a guard page.
    const auto set = [&](test::attention_tensor& tensor, data_type type,
                         const test::extent_list& extents, const std::vector<double>& values) {
        lay_out(random, tensor, type, extents, test::layout::dense);
        tensor.fill(values);
        problem.describe();
    };
    const auto random_values = [&](std::int64_t count, double no, double yes) {
        std::vector<double> result(static_cast<std::size_t>(count));
        for (double& value : result) value = test::one_in(random, 3) ? no : yes;
        return result;
    };
    for (const std::int64_t rows : {2, 3, 8, 24, 32})
        for (const auto order : {attention_order::tiles, attention_order::operators})
            for (const data_type type : {data_type::f32, data_type::bf16}) {
                problem = test::plain_case({2, 6, rows, 16}, {2, 2, 150, 16}, {2, 2, 150, 8}, 13);
                for (auto* tensor : {&problem.query, &problem.key, &problem.value})
                    set(*tensor, type, test::extent_list(tensor->elements.extents),
                        std::vector<double>(tensor->values));
                problem.desc.grouped_queries = true;
                problem.desc.order = order;
                set(problem.cond, data_type::boolean, {rows, 150}, random_values(rows * 150, 0, 1));
                ASSERT_EQ(make_tile_plan(problem.desc, *GetParam())->folded_heads, 3);
                check(problem, GetParam());
                set(problem.bias, type, {2, 1, rows, 150}, random_values(2 * rows * 150, -2, 0.5));
                check(problem, GetParam());
                problem.desc.cond_masks = true;
                problem.desc.fill = -1;
                set(problem.bias, type, {2, 6, rows, 1}, random_values(12 * rows, -2, 0.5));
                check(problem, GetParam());
            }
}

// docs/decisions/0025-panels-of-four.md explains these bounds.
TEST(attention, uses_panels_of_four_for_few_f32_queries) {
    if (std::ranges::count(supported_isas(native_cpu()), isa::avx512) == 0)
        GTEST_SKIP() << "this CPU has no AVX-512";
    const auto panel_of = [](std::int64_t rows, std::int64_t keys, data_type type) {
        attention_desc desc;
        desc.query = {type, {1, rows, 128}};
        desc.key = desc.value = {type, {1, keys, 128}};
        return make_tile_plan(desc, isa::avx512)->panel;
    };
    EXPECT_EQ(panel_of(12, 20, data_type::f32), 4);
    EXPECT_EQ(panel_of(16, 20, data_type::f32), 32);
    EXPECT_EQ(panel_of(16, 1024, data_type::f32), 4);
    EXPECT_EQ(panel_of(20, 20, data_type::f32), 4);
    EXPECT_EQ(panel_of(21, 1024, data_type::f32), 32);
    EXPECT_EQ(panel_of(16, 1024, data_type::bf16), 32);
}

// With order `operators`, attention uses bf16 pairs only if weights are bf16, too.
TEST_P(attention_test, uses_bf16_pairs_if_the_target_has_them) {
    attention_desc desc;
    desc.query = desc.key = desc.value = {data_type::bf16, {1, 33, 16}};
    const auto uses_pairs = [&](attention_order order, data_type weights) {
        desc.order = order;
        desc.weights_type = weights;
        const auto plan = make_tile_plan(desc, *GetParam());
        EXPECT_EQ(plan->in_pairs, plan->weights_in_pairs);
        return plan->in_pairs;
    };
    constexpr isa always[] = {isa::amx, isa::neon_bf16};
    const bool has_pairs =
        std::ranges::count(always, GetParam()->target) > 0 ||
        (GetParam()->target == isa::avx512 && gains_by_bf16_products(native_cpu()));
    EXPECT_EQ(uses_pairs(attention_order::tiles, data_type::f32), has_pairs);
    EXPECT_EQ(uses_pairs(attention_order::operators, data_type::bf16), has_pairs);
    EXPECT_FALSE(uses_pairs(attention_order::operators, data_type::f32));
}

TEST_P(attention_test, computes_empty_tensors) {
    for (const auto& [rows, keys, depth, columns] :
         {std::array<std::int64_t, 4>{0, 5, 4, 4}, {5, 0, 4, 4}, {5, 5, 0, 4}, {5, 5, 4, 0}})
        check(test::plain_case({2, rows, depth}, {2, keys, depth}, {2, keys, columns}, 12),
              GetParam());
}

INSTANTIATE_TEST_SUITE_P(every_target, attention_test, testing::ValuesIn(attention_targets()),
                         [](const auto& chosen) { return name_of(chosen.param); });

} // namespace
} // namespace maskwise
