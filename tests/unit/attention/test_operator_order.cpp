// Tests attention in the order of separate operators. The reference runs MatMul, scale and mask,
// SoftMax and MatMul one after another, and rounds the weights to the graph's type.

#include "attention/run_attention.hpp"
#include "base/cpu.hpp"
#include "support/attention_case.hpp"
#include "support/grid.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace maskwise {
namespace {

using test::attention_case;

constexpr std::int64_t rows = 70, keys = 300, depth = 16, columns = 24;

double rounded(double value, data_type type) {
    return test::round_to(value, test::element_of(type));
}

// Inputs are whole numbers, so scores are exact in any order of summation.
attention_case whole_numbers(unsigned seed) {
    attention_case problem =
        test::plain_case({1, rows, depth}, {1, keys, depth}, {1, keys, columns}, seed);
    for (auto* const tensor : {&problem.query, &problem.key, &problem.value}) {
        std::vector<double> values = tensor->values;
        for (double& value : values) value = std::round(value * 2);
        tensor->fill(values);
    }
    std::vector<double> unmasked(rows * keys, 1);
    for (std::size_t i = 0; i < unmasked.size(); ++i)
        unmasked[i] = (i % keys) * rows <= (i / keys) * keys;
    test::set_cond(problem, {rows, keys}, unmasked);
    return problem;
}

test::grid grid_of(const test::attention_tensor& tensor) {
    return {tensor.elements.extents, tensor.values};
}

// The reference divides and fills scores in f32.
std::vector<double> by_operators(const attention_case& problem, float divisor, data_type type) {
    auto scores =
        test::multiply_matrices(grid_of(problem.query), grid_of(problem.key), false, true).value();
    for (std::size_t i = 0; i < scores.values.size(); ++i)
        scores.values[i] = problem.cond.values[i] != 0
                               ? static_cast<float>(scores.values[i]) / divisor
                               : problem.desc.fill;
    auto weights = test::soft_max(scores, 2, false).first;
    for (double& weight : weights.values) weight = rounded(weight, type);
    return test::multiply_matrices(weights, grid_of(problem.value), false, false)->values;
}

// Returns how many of 1024 elements differ by more than the error of f32 sums.
double differing_per_1024(const attention_case& problem, const std::vector<double>& expected) {
    const std::vector<double> actual = problem.dst.read();
    std::size_t count = 0;
    for (std::size_t i = 0; i < actual.size(); ++i)
        if (std::abs(actual[i] - expected[i]) > 2e-5) ++count;
    return static_cast<double>(count) * 1024 / static_cast<double>(actual.size());
}

class operator_order : public testing::TestWithParam<const kernel_table*> {};

void run(const attention_case& problem, const kernel_table* target, float divisor) {
    const auto plan = make_tile_plan(problem.desc, *target);
    attention_numbers numbers = plan->numbers;
    numbers.steps = {};
    numbers.steps.append({divisor, true});
    numbers.scale = 1 / divisor;
    run_attention(*plan, problem.operands(), numbers);
}

// 1 of 1024 elements may differ, because a weight near the midpoint of two numbers may round either
// way. Order `tiles` rounds weights before it normalizes them, so many elements differ.
TEST_P(operator_order, rounds_weights_after_dividing_them) {
    constexpr float divisor = 3.7F;
    for (const float fill : {-std::numeric_limits<float>::infinity(), -1e9F, -3.0F})
        for (const data_type type : {data_type::f32, data_type::bf16, data_type::f16}) {
            attention_case problem = whole_numbers(5);
            problem.desc.fill = fill;
            problem.desc.order = attention_order::operators;
            problem.desc.weights_type = type;
            const std::vector<double> expected = by_operators(problem, divisor, type);
            run(problem, GetParam(), divisor);
            EXPECT_LE(differing_per_1024(problem, expected), 1)
                << to_string(type) << ", fill " << fill;
            if (type == data_type::f32) continue;
            problem.desc.order = attention_order::tiles;
            run(problem, GetParam(), divisor);
            EXPECT_GT(differing_per_1024(problem, expected), 100)
                << to_string(type) << ", fill " << fill;
        }
}

TEST_P(operator_order, adds_values_in_the_order_of_keys) {
    for (const std::int64_t queries : {1, 3, 8, 33}) {
        attention_case problem = test::plain_case({1, queries, 4}, {1, 200, 4}, {1, 200, 40}, 6);
        problem.query.fill(std::vector<double>(static_cast<std::size_t>(queries * 4), 0));
        problem.desc.order = attention_order::operators;
        run(problem, GetParam(), 1);
        const std::vector<double> actual = problem.dst.read();
        for (std::int64_t c = 0; c < 40; ++c) {
            float sum = 0;
            for (std::int64_t k = 0; k < 200; ++k)
                sum = std::fma(
                    1.0F / 200,
                    static_cast<float>(problem.value.values[static_cast<std::size_t>(k * 40 + c)]),
                    sum);
            if (GetParam()->target == isa::avx2 || GetParam()->target == isa::avx512)
                EXPECT_EQ(actual[static_cast<std::size_t>(c)], static_cast<double>(sum)) << c;
            else // other targets may lack a fused multiply-add
                EXPECT_NEAR(actual[static_cast<std::size_t>(c)], static_cast<double>(sum), 1e-6);
        }
    }
}

// A row's SoftMax includes the sink, even if the mask removes every tile.
TEST_P(operator_order, a_sink_of_nan_makes_masked_rows_nan) {
    for (const double sink : {std::nan(""), HUGE_VAL})
        for (const bool nan_as_zero : {false, true}) {
            attention_case problem = test::plain_case({1, 3, 4}, {1, 70, 4}, {1, 70, 5}, 7);
            test::set_cond(problem, {70}, std::vector<double>(70, 0));
            test::generator random(8);
            lay_out(random, problem.sinks, data_type::f32, {1}, test::layout::dense);
            problem.sinks.fill({sink});
            problem.desc.order = attention_order::operators;
            problem.desc.nan_as_zero = nan_as_zero;
            problem.describe();
            run(problem, GetParam(), 1);
            for (const double value : problem.dst.read())
                EXPECT_TRUE(nan_as_zero ? value == 0 : std::isnan(value)) << value;
        }
}

INSTANTIATE_TEST_SUITE_P(every_target, operator_order, testing::ValuesIn(attention_targets()),
                         [](const auto& chosen) { return name_of(chosen.param); });

} // namespace
} // namespace maskwise
