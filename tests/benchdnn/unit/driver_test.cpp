#include "driver/draw.hpp"
#include "driver/fill.hpp"
#include "driver/pattern.hpp"
#include "driver/rule.hpp"
#include "faults/wrong_attention.hpp"
#include "support/grid.hpp"
#include "support/numbers.hpp"
#include "unit/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace maskwise::bench::driver {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Query 0 x key 1 -> 2; divided by 3 -> 4; Select by 5, or else 6 -> 7; SoftMax 8; x value 9 -> 10.
graph attention(data_type type) {
    const dims scores{1, 2, 6, 6};
    const auto t = [&](std::size_t id, const dims& shape) { return make_tensor(id, type, shape); };
    const dims rows{1, 2, 6, 4};
    graph g;
    g.ops = {make_op("MatMul", {t(0, rows), t(1, rows)}, {t(2, scores)}, {{"transpose_b", true}}),
             make_op("Divide", {t(2, scores), t(3, {})}, {t(4, scores)}),
             make_op("Select", {make_tensor(5, data_type::boolean, scores), t(4, scores), t(6, {})},
                     {t(7, scores)}),
             make_op("SoftMax", {t(7, scores)}, {t(8, scores)},
                     {{"axis", std::int64_t{-1}}, {"mode", std::string("inf_as_zero")}}),
             make_op("MatMul", {t(8, scores), t(9, rows)}, {t(10, rows)})};
    for (std::size_t i = 0; i < g.ops.size(); ++i) g.ops[i].id = i;
    return g;
}

tensor_map filled(const graph& g) {
    return driver::fill_inputs(g, bench::fill_inputs(g, {}));
}

std::vector<double> numbers_of(const graph& g, std::size_t id) {
    return to_doubles(filled(g).at(id));
}

TEST(driver_pattern, attention_rounds_around_its_softmax_alone) {
    const graph g = attention(data_type::bf16);
    EXPECT_EQ(recognize(g), pattern::attention);
    const roundings softmax = roundings_of(g, g, g.ops[3]);
    EXPECT_EQ(softmax.inputs[0], data_type::bf16);
    EXPECT_EQ(softmax.outputs[0], data_type::bf16);
    EXPECT_EQ(roundings_of(g, g, g.ops[0]).outputs[0], data_type::undef);
    graph alone;
    alone.ops = {g.ops[3]};
    EXPECT_EQ(recognize(alone), pattern::other);
    EXPECT_EQ(roundings_of(alone, alone, alone.ops[0]).outputs[0], data_type::undef);
    EXPECT_EQ(roundings_of(g, alone, g.ops[3]).outputs[0], data_type::undef); // it leaves the part
}

TEST(driver_pattern, a_cast_behind_the_softmax_says_the_type) {
    graph g = attention(data_type::f32);
    op cast = make_op("TypeCast", {g.ops[3].outputs[0]},
                      {make_tensor(11, data_type::bf16, {1, 2, 6, 6})});
    cast.id = 5;
    g.ops[4].inputs[0].id = 11;
    g.ops.insert(g.ops.begin() + 4, cast);
    EXPECT_EQ(recognize(g), pattern::attention);
    EXPECT_EQ(roundings_of(g, g, g.ops[3]).outputs[0], data_type::bf16);
}

TEST(driver_fill, integers_for_products_and_powers_of_two_for_factors) {
    const graph g = attention(data_type::f32);
    for (const auto& [id, limit] : {std::pair{0U, 64.0}, {1U, 128.0}, {9U, 128.0}})
        for (const double x : numbers_of(g, id)) {
            EXPECT_EQ(x, std::floor(x));
            EXPECT_LE(std::fabs(x), limit);
        }
    const double divisor = numbers_of(g, 3).at(0);
    EXPECT_TRUE(divisor == 2 || divisor == 4 || divisor == 8) << divisor;
    EXPECT_EQ(numbers_of(g, 0), numbers_of(g, 0));
}

TEST(driver_fill, a_given_mask_keeps_everything) {
    graph g = attention(data_type::f32);
    EXPECT_EQ(numbers_of(g, 5), std::vector<double>(72, 1.0));
    std::swap(g.ops[2].inputs[1], g.ops[2].inputs[2]);
    EXPECT_EQ(numbers_of(g, 5), std::vector<double>(72, 0.0));
}

TEST(driver_fill, a_computed_mask_takes_minus_infinity) {
    graph g = attention(data_type::f32);
    op compare =
        make_op("GreaterEqual",
                {make_tensor(20, data_type::f32, {6, 1}), make_tensor(21, data_type::f32, {6})},
                {g.ops[2].inputs[0]});
    compare.id = 9;
    g.ops.insert(g.ops.begin(), compare);
    EXPECT_EQ(numbers_of(g, 6), std::vector<double>{-infinity});
}

TEST(driver_fill, an_added_mask_is_causal_and_masks_the_last_row) {
    graph g = attention(data_type::f32);
    g.ops[2] = make_op("Add", {g.ops[1].outputs[0], make_tensor(5, data_type::f32, {1, 1, 6, 6})},
                       {g.ops[2].outputs[0]});
    const std::vector<double> mask = numbers_of(g, 5);
    EXPECT_EQ(mask[0], 0);
    EXPECT_EQ(mask[1], -infinity);
    EXPECT_EQ(mask[28], 0); // row 4, key 4
    EXPECT_EQ(std::count(mask.end() - 6, mask.end(), -infinity), 6);
    g.ops[2].inputs[1].shape = {1, 1, 1, 6};
    EXPECT_EQ(numbers_of(g, 5), std::vector<double>(6, 0.0));
}

TEST(driver_fill, sums_are_exact_in_the_results_type) {
    const product half{data_type::bf16, data_type::bf16, data_type::bf16, 64};
    const numbers query = draw_operand(half, 0, 4096);
    const auto zeros = std::count(query.begin(), query.end(), 0.0);
    EXPECT_GT(zeros, 4096 / 2); // half are left out, and one of nine is 0 by itself
    EXPECT_LT(zeros, 4096 * 3 / 4);
    EXPECT_LE(*std::ranges::max_element(query), 4);
    EXPECT_GT(query[0], 0);
}

rule of_product(data_type type) {
    const graph g = attention(type);
    return rule_for(g, g.ops[4], 0);
}

std::size_t errors_with(std::size_t wrong, double by, const rule& r) {
    const tensor want = from_doubles(data_type::f32, {4096}, std::vector<double>(4096, 1.0));
    std::vector<double> values(4096, 1.0);
    for (std::size_t i = 0; i < wrong; ++i) values[i] += by;
    return compare_as_driver(want, from_doubles(data_type::f32, {4096}, values), r).errors;
}

TEST(driver_rule, products_are_equal_or_few_differ_and_the_norm_is_near) {
    const rule r = of_product(data_type::f32);
    EXPECT_EQ(errors_with(0, 0, r), 0U);
    EXPECT_EQ(errors_with(4, 1e-6, r), 0U); // 4 of 4096
    EXPECT_EQ(errors_with(5, 1e-6, r), 5U);
    EXPECT_EQ(errors_with(1, 0.19, r), 0U); // the norm of 4096 ones is 64
    EXPECT_EQ(errors_with(1, 0.2, r), 1U);
    EXPECT_EQ(errors_with(1, infinity, r), 1U);
    EXPECT_EQ(errors_with(1, NAN, r), 1U);
}

TEST(driver_rule, each_operator_has_its_own_limit) {
    graph g = attention(data_type::f32);
    EXPECT_EQ(errors_with(100, 1e-6, rule_for(g, g.ops[3], 0)), 0U);
    EXPECT_EQ(errors_with(100, 2e-6, rule_for(g, g.ops[3], 0)), 100U);
    EXPECT_EQ(errors_with(100, 1e-6, rule_for(g, g.ops[2], 0)), 100U);
    g.ops[1].kind = "Exp"; // an element-wise function before the product widens its limits
    EXPECT_EQ(errors_with(100, 1e-6, rule_for(g, g.ops[4], 0)), 0U);
    EXPECT_EQ(errors_with(100, 3e-5, rule_for(g, g.ops[4], 0)), 100U);
}

// Causal attention in bf16 on the driver's values: as the graph rounds, and as it must not.
class rounded_attention : public testing::Test {
protected:
    static constexpr std::size_t heads = 4, rows = 64, depth = 32, count = heads * rows * depth;
    static constexpr double factor = 0.25;
    const product scores{data_type::bf16, data_type::bf16, data_type::bf16, depth};
    const product sums{data_type::bf16, data_type::bf16, data_type::bf16, rows};
    tensor query = bf16(draw_operand(scores, 0, count)), key = bf16(draw_operand(scores, 1, count)),
           value = bf16(draw_operand(sums, 1, count));

    static tensor bf16(const numbers& values) {
        return from_doubles(data_type::bf16, {static_cast<std::int64_t>(values.size())}, values);
    }

    // Weights are divided by their sum and rounded.
    tensor as_the_graph_rounds() const {
        const auto grid_of = [](const tensor& t) {
            return test::grid{{heads, rows, depth}, to_doubles(t)};
        };
        auto products = test::multiply_matrices(grid_of(query), grid_of(key), false, true).value();
        for (std::size_t i = 0; i < products.values.size(); ++i)
            products.values[i] =
                i % rows <= i / rows % rows ? products.values[i] * factor : -infinity;
        auto weights = test::soft_max(products, 2, false).first;
        for (double& weight : weights.values) weight = test::round_to(weight, test::element::bf16);
        return from_doubles(data_type::f32, {count},
                            test::multiply_matrices(weights, grid_of(value), false, false)->values);
    }

    tensor dividing_late(bool rounds_weights) const {
        return bf16(attend_dividing_late(
            {to_doubles(query), to_doubles(key), to_doubles(value), factor, heads, rows, depth},
            rounds_weights));
    }
};

TEST_F(rounded_attention, passes_as_the_graph_rounds) {
    const tensor want = as_the_graph_rounds();
    const tensor got = bf16(to_doubles(want));
    EXPECT_EQ(compare_as_driver(want, got, of_product(data_type::bf16)).errors, 0U);
}

TEST_F(rounded_attention, fails_with_weights_rounded_or_divided_in_another_place) {
    const tensor want = as_the_graph_rounds();
    const graph g = attention(data_type::bf16);
    const tolerance today = tolerance_for(g, g.ops[4].outputs[0], false);
    for (const bool rounds_weights : {false, true}) {
        const tensor got = dividing_late(rounds_weights);
        EXPECT_EQ(compare(want, got, today).errors, 0U); // which is why there is a second rule
        EXPECT_GT(compare_as_driver(want, got, of_product(data_type::bf16)).errors, count / 100);
    }
}

} // namespace
} // namespace maskwise::bench::driver
