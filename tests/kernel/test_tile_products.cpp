// Compares the emulated TDPBF16PS with numbers computed by hand. Compares the kernels with the
// definition of TDPBF16PS, on emulated, trapped or real tiles.

#include "kernel/emulated_tables.hpp"
#include "kernel/emulated_tiles.hpp"
#include "product_case.hpp"
#include "trapped_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace maskwise::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Returns sum + the dot product of a and b. `a` is in row 3 of its tile, `b` in column 1; all other
// elements are 0.
float product(float sum, const std::vector<float>& a, const std::vector<float>& b) {
    using tiles = emulated_tiles<4>;
    std::vector<std::uint16_t> rows(16 * 32), pairs(16 * 4 * 2);
    std::vector<float> sums(16 * 4, sum);
    for (std::size_t i = 0; i < a.size(); ++i) {
        rows[3 * 32 + i] = bf16(a[i]);
        pairs[i / 2 * 8 + 2 + i % 2] = bf16(b[i]);
    }
    tiles::configure();
    tiles used;
    used.load<0>(sums.data(), 16);
    used.load<first_a_tile>(rows.data(), 64);
    used.load<first_b_tile>(pairs.data(), 16);
    used.add_products<0, first_a_tile, first_b_tile>();
    used.store<0>(sums.data(), 16);
    tiles::release();
    return sums[3 * 4 + 1];
}

TEST(emulated_tiles, add_pairs) {
    EXPECT_EQ(product(0.5F, {1, 2}, {3, 4}), 11.5F);
    EXPECT_EQ(product(-1, {1, 2, 3, -4}, {1, 1, 1, 1}), 1);
}

TEST(emulated_tiles, add_each_half_separately_and_the_sum_last) {
    // 2^24 + 1 rounds to 2^24, but 2^24 + 2 is exact.
    EXPECT_EQ(product(0, {4096, 0, 1, 1}, {4096, 0, 1, 1}), 0x1p24F);
    EXPECT_EQ(product(0, {4096, 1, 0, 1}, {4096, 1, 0, 1}), 0x1p24F + 2);
    EXPECT_EQ(product(0x1p24F, {1, 1}, {1, 1}), 0x1p24F + 2);
    EXPECT_EQ(product(0x1p24F, {1, 0, 0, 0}, {1, 0, 0, 0}), 0x1p24F);
}

TEST(emulated_tiles, round_a_product_with_its_sum) {
    EXPECT_EQ(product(0, {-0x1p63F, 0, 0x1p64F}, {0x1p64F, 0, 0x1p64F}), 0x1p127F);
    EXPECT_EQ(product(0, {0x1p64F}, {0x1p64F}), infinity);
    // Ties round to even: up from an odd number, down to an even number.
    EXPECT_EQ(product(0, {1, 0, 0x1p-12F, 0, 0x1p-12F}, {1, 0, 0x1.8p-11F, 0, 0x1p-12F}),
              1 + 0x1p-22F);
    EXPECT_EQ(product(0, {1, 0, 0x1p-12F}, {1, 0, 0x1p-12F}), 1);
}

TEST(emulated_tiles, treat_denormals_as_zeros) {
    EXPECT_EQ(product(0, {0x1p-127F}, {0x1p100F}), 0);
    EXPECT_EQ(product(1e-40F, {1}, {0}), 0);
    EXPECT_EQ(product(0, {0x1p-64F}, {0x1p-63F}), 0);
    EXPECT_EQ(product(0, {0x1p-63F}, {0x1p-63F}), 0x1p-126F);
    // A value just below the smallest normal number becomes that number only if rounding to 24 bits
    // gives that number.
    const float before = std::nextafter(0x1p-124F, 0.0F);
    EXPECT_EQ(tile_arithmetic::rounded(0x1.fffffep-127), 0);
    EXPECT_EQ(tile_arithmetic::rounded(0x1.ffffffp-127), 0x1p-126F);
    EXPECT_EQ(tile_arithmetic::rounded(-0x1.ffffffp-127), -0x1p-126F);
    EXPECT_EQ(tile_arithmetic::add(0x1p-124F, -before), 0);
}

TEST(emulated_tiles, pass_nan_and_infinity_on) {
    EXPECT_TRUE(std::isnan(product(0, {std::numeric_limits<float>::quiet_NaN()}, {1})));
    EXPECT_TRUE(std::isnan(product(0, {infinity}, {0})));
    EXPECT_TRUE(std::isnan(product(-infinity, {infinity}, {1})));
    EXPECT_EQ(product(0, {-infinity}, {2}), -infinity);
}

// On a CPU, an instruction on tiles without a configuration is illegal.
TEST(emulated_tiles_DeathTest, end_a_process_that_did_not_configure_them) {
    emulated_tiles<4> tiles;
    EXPECT_DEATH(tiles.zero<0>(), "");
}

// The tables with emulated tiles, and AMX's table if this process may use tiles.
std::vector<const kernel_table*> tile_tables() {
    std::vector<const kernel_table*> tables;
    for (const kernel_table& table : emulated_tables()) tables.push_back(&table);
    if (supported_isas(native_cpu()).back() == isa::amx && may_use_tiles())
        tables.push_back(&kernel_table_for(isa::amx));
    return tables;
}

// Sums the products of the low (odd = 0) or high (odd = 1) halves of up to 16 pairs.
float half(const product_case& problem, std::int64_t row, std::int64_t query, std::int64_t first,
           int odd) {
    float sum = 0;
    for (std::int64_t k = first; k < std::min(problem.steps, first + 16); ++k)
        sum = flushed(std::fma(flushed(problem.a.at(row, 2 * k + odd)),
                               flushed(problem.b.at(k, 2 * query + odd)), sum));
    return sum;
}

float expected(const product_case& problem, std::int64_t row, std::int64_t query) {
    float sum =
        problem.has_factor ? problem.with_factor(0, row, query) : problem.first_sum(row, query);
    for (std::int64_t k = 0; k < problem.steps; k += 16)
        sum = flushed(flushed(sum) +
                      flushed(half(problem, row, query, k, 0) + half(problem, row, query, k, 1)));
    return sum;
}

void expect_product(const attention_kernels& kernels, generator& random) {
    const bool may_add = kernels.multiply_value_pairs != nullptr; // narrow panels only set sums
    const product_case problem(random, kernels.panel(), may_add);
    std::vector<float> wanted;
    problem.for_each_sum([&](std::int64_t row, std::int64_t query) {
        wanted.push_back(expected(problem, row, query));
    });
    kernels.begin_products();
    kernels.multiply_key_pairs(problem.product());
    kernels.end_products();
    std::size_t i = 0;
    problem.for_each_sum([&](std::int64_t row, std::int64_t query) {
        ASSERT_PRED2(is_same, problem.sum(row, query), wanted[i++]) << problem.text(row, query);
    });
}

void expect_products(const kernel_table& table, generator& random) {
    for (int i = 0; i < 300; ++i) {
        SCOPED_TRACE(to_string(table.base));
        ASSERT_NO_FATAL_FAILURE(expect_product(table.attention, random));
        if (table.base == isa::scalar) continue; // no narrow panels
        ASSERT_NO_FATAL_FAILURE(expect_product(table.attention_panel_of_4, random));
        ASSERT_NO_FATAL_FAILURE(expect_product(table.attention_panel_of_1, random));
    }
}

TEST(tile_products, match_the_instruction) {
    ASSERT_FALSE(tile_tables().empty());
    generator random(base_seed());
    for (const kernel_table* table : tile_tables())
        ASSERT_NO_FATAL_FAILURE(expect_products(*table, random));
}

#if defined(__x86_64__)

// Runs AMX's kernels on a CPU without AMX. A signal handler emulates the tile instructions.
TEST(tile_products, match_the_trapped_instructions) {
    const auto supported = supported_isas(native_cpu());
    if (supported.back() != isa::avx512) GTEST_SKIP() << "needs AVX-512 without AMX";
    const auto tables = kernel_tables();
    const auto amx = std::ranges::find(tables, isa::amx, &kernel_table::target);
    ASSERT_NE(amx, tables.end());
    generator random(base_seed());
    const trapped_tiles tiles;
    ASSERT_NO_FATAL_FAILURE(expect_products(**amx, random));
    EXPECT_FALSE(tiles.are_configured());
    EXPECT_GT(tiles.products(), 2000);
}

#endif

// load_pairs packs rows in pairs, in the order that the table's products read.
TEST(pairs_of_rows, are_where_load_pairs_says) {
    std::vector<const kernel_table*> tables;
    for (const kernel_table& table : emulated_tables()) tables.push_back(&table);
    for (const isa target : supported_isas(native_cpu()))
        tables.push_back(&kernel_table_for(target));
    generator random(base_seed());
    for (const kernel_table* table : tables)
        for (int i = 0; i < 200; ++i) {
            const std::int64_t rows = draw(random, 1, 70), columns = draw(random, 1, 70);
            const bf16_matrix from(random, rows, columns, draw(random, 0, 9));
            const guarded_buffer to(static_cast<std::size_t>((rows + 1) / 2 * columns * 4),
                                    guarded_buffer::edge::back);
            const strided_matrix packed = table->attention.load_pairs(
                {from.memory.data(), elem_type::bf16, from.row_bytes, 2}, rows, columns, i % 2 == 0,
                reinterpret_cast<float*>(to.data()));
            for (std::int64_t r = 0; r < (rows + 1) / 2 * 2; ++r)
                for (std::int64_t c = 0; c < columns; ++c) {
                    std::uint16_t bits;
                    std::memcpy(&bits,
                                packed.first + r / 2 * packed.row_bytes + c * packed.column_bytes +
                                    r % 2 * 2,
                                sizeof bits);
                    ASSERT_EQ(bits, r < rows ? bf16(from.at(r, c)) : 0)
                        << to_string(table->target) << ' ' << to_string(table->base) << ' ' << r
                        << ' ' << c << " of " << rows << 'x' << columns;
                }
        }
}

} // namespace
} // namespace maskwise::test
