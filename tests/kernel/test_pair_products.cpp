// Products of bf16 pairs match the definition of BFDOT: on ARM bit-exactly if steps are added in
// order, else within rounding errors.

#include "product_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace maskwise::test {
namespace {

// Returns a + b, rounded to odd in f64, then rounded to odd in f32. Denormal inputs and results
// count as zero.
float odd_sum(float a, float b) {
    const double x{flushed(a)}, y{flushed(b)}, sum = x + y;
    if (!std::isfinite(sum)) return static_cast<float>(sum);
    const double of_y = sum - x, lost = (x - (sum - of_y)) + (y - of_y);
    auto bits = std::bit_cast<std::uint64_t>(sum);
    if (lost != 0 && bits % 2 == 0) bits += (lost < 0) == (sum < 0) ? 1U : ~std::uint64_t{0};
    constexpr std::uint64_t below_f32 = (std::uint64_t{1} << 29) - 1;
    if ((bits & below_f32) != 0) bits = (bits | below_f32 | (below_f32 + 1)) & ~below_f32;
    const auto odd = std::bit_cast<double>(bits);
    return std::abs(odd) < 0x1p-126 ? 0 : static_cast<float>(odd);
}

float dot(const product_case& problem, std::int64_t row, std::int64_t query, std::int64_t step) {
    const auto product = [&](int half) {
        const float a = problem.a.at(row, 2 * step + half),
                    b = problem.b.at(step, 2 * query + half);
        return flushed(flushed(a) * flushed(b));
    };
    return odd_sum(product(0), product(1));
}

struct wanted_sum {
    float value, size; // size: scale of the tolerance
};

wanted_sum expected(const product_case& problem, std::int64_t row, std::int64_t query) {
    float sum = problem.first_sum(row, query), size = 100 * 16;
    for (std::int64_t k = 0; k < problem.steps; ++k) {
        sum = odd_sum(sum, dot(problem, row, query, k));
        for (const int half : {0, 1})
            size += std::abs(problem.a.at(row, 2 * k + half) * problem.b.at(k, 2 * query + half));
    }
    return {problem.with_factor(sum, row, query), size};
}

// Accepts any sum of large terms, because another order of additions may overflow.
bool is_near(float sum, const wanted_sum& wanted, std::int64_t steps) {
    if (!(wanted.size < 1e30F)) return true;
    return std::abs(sum - wanted.value) <=
           0x1p-22F * static_cast<float>(steps + 2) * wanted.size + 1e-36F;
}

void expect_product(const kernel_table& table, generator& random) {
    product_case problem(random, table.attention.panel());
    std::vector<wanted_sum> wanted;
    problem.for_each_sum([&](std::int64_t row, std::int64_t query) {
        wanted.push_back(expected(problem, row, query));
    });
    panel_product product = problem.product();
    guarded_buffer by_steps(static_cast<std::size_t>(problem.rows * problem.steps * 4),
                            guarded_buffer::edge::back);
    if (one_in(random, 2)) { // the layout that load_pairs produces
        for (std::int64_t row = 0; row < problem.rows; ++row)
            for (std::int64_t k = 0; k < problem.steps; ++k)
                std::memcpy(by_steps.data() + (k * problem.rows + row) * 4,
                            product.a + row * product.row_bytes + k * 4, 4);
        product.a = by_steps.data();
        product.row_bytes = 4;
        product.step_bytes = problem.rows * 4;
    }
    table.attention.multiply_key_pairs(product);
    const bool is_in_order = problem.steps % 2 == 0 || !problem.has_factor;
    const bool is_exact = table.target != isa::avx512 && is_in_order;
    std::size_t i = 0;
    problem.for_each_sum([&](std::int64_t row, std::int64_t query) {
        const wanted_sum& sum = wanted[i++];
        const float actual = problem.sum(row, query);
        ASSERT_TRUE(is_exact ? is_same(actual, sum.value) : is_near(actual, sum, problem.steps))
            << actual << ", expected " << sum.value << ": " << problem.text(row, query)
            << ", step bytes " << product.step_bytes;
    });
}

TEST(pair_products, match_the_instruction) {
    const auto supported = supported_isas(native_cpu());
    generator random(base_seed());
    int tables = 0;
    for (const kernel_table* table : kernel_tables()) {
        const bool is_here = std::ranges::count(supported, table->target) > 0 &&
                             (table->target != isa::avx512 || has_bf16_products(native_cpu()));
        if (!is_here || !table->attention.multiply_key_pairs || table->attention.begin_products)
            continue;
        ++tables;
        for (int i = 0; i < 500; ++i) {
            SCOPED_TRACE(to_string(table->target));
            ASSERT_NO_FATAL_FAILURE(expect_product(*table, random));
        }
    }
    if (tables == 0) GTEST_SKIP() << "this CPU has no products of bf16 pairs";
}

} // namespace
} // namespace maskwise::test
