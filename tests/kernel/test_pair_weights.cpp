// Compares bf16 weights with exp in f64, for every 509th float from -104 to 0. With
// MASKWISE_EXHAUSTIVE=1, compares every float.

#include "kernel/kernel_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

namespace maskwise::test {
namespace {

constexpr std::int64_t keys = 64;

// A panel of scores.
struct weighed_panel {
    explicit weighed_panel(const attention_kernels& used)
        : kernels(used), panel(used.panel()), scores(static_cast<std::size_t>(keys * panel)),
          maximum(static_cast<std::size_t>(panel)), sum(maximum), factor(maximum) {}

    void run(float running_maximum = 0, float scale = 1) {
        std::ranges::fill(maximum, running_maximum);
        std::ranges::fill(sum, 0.0F);
        panel_scores original;
        original.scores = scores.data();
        original.keys = keys;
        original.queries = panel;
        original.in_pairs = true;
        if (scale != 1) original.steps.append({scale, false});
        kernels.softmax_update(original, {maximum.data(), sum.data(), nullptr}, factor.data());
    }
    float weight(std::int64_t key, std::int64_t query) const {
        const auto pair =
            std::bit_cast<std::uint32_t>(scores[static_cast<std::size_t>(key / 2 * panel + query)]);
        return std::bit_cast<float>(key % 2 == 0 ? pair << 16 : pair & 0xFFFF0000U);
    }

    const attention_kernels& kernels;
    std::int64_t panel;
    std::vector<float> scores, maximum, sum, factor;
};

// Tolerates half a unit in the last place of bf16, plus 1/64 of this half for the error of the
// exponential. Numbers below 2^-125 may become 0.
bool is_rounded(float weight, double wanted) {
    constexpr double least = 0x1p-126;
    if (wanted < 2 * least && weight == 0) return true;
    const double unit = std::ldexp(1.0, std::max(std::ilogb(wanted), -126) - 7);
    return std::abs(weight - wanted) <= unit / 2 * (1 + 1.0 / 64);
}

void expect_weights(const attention_kernels& kernels) {
    const std::uint32_t step = std::getenv("MASKWISE_EXHAUSTIVE") != nullptr ? 1 : 509;
    const std::uint32_t last = std::bit_cast<std::uint32_t>(104.0F);
    weighed_panel tested(kernels);
    std::vector<float> original(tested.scores.size());
    for (std::uint32_t bits = 0; bits <= last;) {
        for (float& score : original) {
            score = -std::bit_cast<float>(std::min(bits, last));
            bits += step;
        }
        tested.scores = original;
        tested.run();
        std::vector<double> sums(static_cast<std::size_t>(tested.panel));
        for (std::int64_t key = 0; key < keys; ++key)
            for (std::int64_t q = 0; q < tested.panel; ++q) {
                const float score = original[static_cast<std::size_t>(key * tested.panel + q)];
                const double wanted = std::exp(static_cast<double>(score));
                sums[static_cast<std::size_t>(q)] += wanted;
                ASSERT_TRUE(is_rounded(tested.weight(key, q), wanted))
                    << score << " became " << tested.weight(key, q) << ", exp is " << wanted;
            }
        for (std::size_t q = 0; q < sums.size(); ++q)
            ASSERT_NEAR(tested.sum[q], sums[q], sums[q] * 0x1p-16 + 0x1p-120);
    }
}

TEST(pair_weights, are_exp_within_a_rounding_to_bf16) {
    const auto supported = supported_isas(native_cpu());
    int tables = 0;
    for (const kernel_table* table : kernel_tables()) {
        if (std::ranges::count(supported, table->target) == 0) continue;
        if (table->attention.multiply_value_pairs == nullptr) continue;
        ++tables;
        SCOPED_TRACE(to_string(table->target));
        ASSERT_NO_FATAL_FAILURE(expect_weights(table->attention));
    }
    if (tables == 0) GTEST_SKIP() << "this CPU has no products of bf16 pairs";
}

TEST(pair_weights, are_exact_at_both_ends) {
    const auto supported = supported_isas(native_cpu());
    for (const kernel_table* table : kernel_tables()) {
        if (std::ranges::count(supported, table->target) == 0) continue;
        if (table->attention.multiply_value_pairs == nullptr) continue;
        SCOPED_TRACE(to_string(table->target));
        weighed_panel tested(table->attention);
        constexpr float infinity = std::numeric_limits<float>::infinity();
        std::ranges::fill(tested.scores, -infinity);
        tested.scores[0] = 0;
        tested.scores[1] = std::numeric_limits<float>::quiet_NaN();
        tested.run();
        EXPECT_EQ(tested.weight(0, 0), 1);
        EXPECT_EQ(tested.sum[0], 1);
        EXPECT_TRUE(std::isnan(tested.sum[1]));
        for (std::int64_t key = 1; key < keys; ++key) EXPECT_EQ(tested.weight(key, 0), 0);
    }
}

// A rounding error of a huge shift must not reach the weights.
TEST(pair_weights, are_one_or_zero_for_huge_scores) {
    const auto supported = supported_isas(native_cpu());
    for (const kernel_table* table : kernel_tables()) {
        if (std::ranges::count(supported, table->target) == 0) continue;
        if (table->attention.multiply_value_pairs == nullptr) continue;
        SCOPED_TRACE(to_string(table->target));
        for (const float scale : {1.0F, 0.125F})
            for (const float huge :
                 {1234567.0F, 1.1e9F, -1.7e9F, 1e30F, 0x1p125F, 0x1p126F, 3.4e38F, -0x1p127F}) {
                weighed_panel tested(table->attention);
                std::ranges::fill(tested.scores, huge - std::abs(huge) / 2);
                tested.scores[0] = tested.scores[static_cast<std::size_t>(2 * tested.panel)] = huge;
                tested.run(-std::numeric_limits<float>::infinity(), scale);
                EXPECT_EQ(tested.weight(0, 0), 1) << huge;
                EXPECT_EQ(tested.weight(1, 0), 0) << huge;
                EXPECT_EQ(tested.weight(2, 0), 1) << huge;
                EXPECT_EQ(tested.sum[0], 2) << huge;
                EXPECT_EQ(tested.factor[0], 0) << huge;
            }
    }
}

} // namespace
} // namespace maskwise::test
