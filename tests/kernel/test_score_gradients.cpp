// Tests that weights and gradients of scores are rounded to the requested type.

#include "kernel/kernel_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

namespace maskwise::test {
namespace {

constexpr std::int64_t keys = 7;

struct weights_and_gradients {
    std::vector<float> weights, gradients;
};

weights_and_gradients computed(const attention_kernels& kernels, elem_type type) {
    const auto panel = static_cast<std::size_t>(kernels.panel());
    std::mt19937 random(5);
    std::uniform_real_distribution<float> number(-4, 4);
    weights_and_gradients result{std::vector<float>(std::size_t{keys} * panel), {}};
    for (float& score : result.weights) score = number(random);
    result.gradients = result.weights;
    const std::vector<float> maxima(panel, 4), zeros(panel, 0);
    panel_scores scores;
    scores.scores = result.weights.data();
    scores.keys = keys;
    scores.queries = kernels.panel();
    panel_gradients to;
    to.products = result.gradients.data();
    to.maxima = maxima.data();
    to.log_sums = to.deltas = zeros.data();
    to.rounds_to = type;
    EXPECT_TRUE(kernels.score_gradients(scores, to));
    return result;
}

float rounded_to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U);
}

TEST(score_gradients, are_rounded_to_bf16) {
    const auto supported = supported_isas(native_cpu());
    for (const kernel_table* table : kernel_tables()) {
        if (std::ranges::count(supported, table->target) == 0) continue;
        SCOPED_TRACE(to_string(table->target));
        auto expected = computed(table->attention, elem_type::f32);
        const auto rounded = computed(table->attention, elem_type::bf16);
        std::ranges::transform(expected.weights, expected.weights.begin(), rounded_to_bf16);
        std::ranges::transform(expected.gradients, expected.gradients.begin(), rounded_to_bf16);
        EXPECT_EQ(rounded.weights, expected.weights);
        EXPECT_EQ(rounded.gradients, expected.gradients);
    }
}

} // namespace
} // namespace maskwise::test
