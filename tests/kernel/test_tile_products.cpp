// Products of bf16 by tiles: the instruction in C++ against numbers worked out by hand, and the
// kernels that are made of it, or of the instruction itself, against its definition.

#include "kernel/emulated_tiles.hpp"
#include "kernel_cases.hpp"
#include "trapped_tiles.hpp"

#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace maskwise::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint16_t bf16(float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

float number(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// sum + the products of these, which stand in row 3 of a and column 1 of b; the rest is 0.
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

TEST(emulated_tiles, add_each_half_by_itself_and_the_sum_last) {
    // 2^24 swallows one 1, and half of the next even number.
    EXPECT_EQ(product(0, {4096, 0, 1, 1}, {4096, 0, 1, 1}), 0x1p24F);
    EXPECT_EQ(product(0, {4096, 1, 0, 1}, {4096, 1, 0, 1}), 0x1p24F + 2);
    EXPECT_EQ(product(0x1p24F, {1, 1}, {1, 1}), 0x1p24F + 2);
    EXPECT_EQ(product(0x1p24F, {1, 0, 0, 0}, {1, 0, 0, 0}), 0x1p24F);
}

TEST(emulated_tiles, round_a_product_with_its_sum) {
    EXPECT_EQ(product(0, {-0x1p63F, 0, 0x1p64F}, {0x1p64F, 0, 0x1p64F}), 0x1p127F);
    EXPECT_EQ(product(0, {0x1p64F}, {0x1p64F}), infinity);
    // To even: half a unit of an odd number and of an even one.
    EXPECT_EQ(product(0, {1, 0, 0x1p-12F, 0, 0x1p-12F}, {1, 0, 0x1.8p-11F, 0, 0x1p-12F}),
              1 + 0x1p-22F);
    EXPECT_EQ(product(0, {1, 0, 0x1p-12F}, {1, 0, 0x1p-12F}), 1);
}

TEST(emulated_tiles, take_denormals_for_zeros) {
    EXPECT_EQ(product(0, {0x1p-127F}, {0x1p100F}), 0);
    EXPECT_EQ(product(1e-40F, {1}, {0}), 0);
    EXPECT_EQ(product(0, {0x1p-64F}, {0x1p-63F}), 0);
    EXPECT_EQ(product(0, {0x1p-63F}, {0x1p-63F}), 0x1p-126F);
    // Just below the least normal number: it rounds up to it only where 24 bits do.
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

// As on a CPU, where that is an illegal instruction.
TEST(emulated_tiles_DeathTest, end_a_process_that_did_not_configure_them) {
    emulated_tiles<4> tiles;
    EXPECT_DEATH(tiles.zero<0>(), "");
}

// What the kernels of tiles are tested with: where they run, and how many queries a panel has.
std::vector<const kernel_table*> tile_tables() {
    const auto supported = supported_isas(native_cpu());
    const auto has = [&](isa wanted) { return std::ranges::count(supported, wanted) > 0; };
    std::vector<const kernel_table*> tables;
    for (const kernel_table* table : kernel_tables())
        if ((table->target == isa::emulated_amx && has(table->base)) ||
            (table->target == isa::amx && has(isa::amx)))
            tables.push_back(table);
    return tables;
}

float flushed(float value) {
    return std::abs(value) < 0x1p-126F ? 0 : value;
}

// A matrix of random bf16 against a guard.
struct bf16_matrix {
    bf16_matrix(generator& random, std::int64_t rows, std::int64_t columns, std::int64_t gap)
        : row_bytes(2 * (columns + gap)),
          memory(static_cast<std::size_t>(rows == 0 ? 0 : (rows - 1) * row_bytes + 2 * columns),
                 one_in(random, 2) ? guarded_buffer::edge::front : guarded_buffer::edge::back) {
        fill_random(random, memory.data(), memory.size());
        if (one_in(random, 3)) return;
        for (std::size_t i = 0; i + 1 < memory.size(); i += 2) { // no NaN, little that overflows
            const std::uint16_t bits = bf16(static_cast<float>(draw(random, -999, 999)) / 64);
            std::memcpy(memory.data() + i, &bits, sizeof bits);
        }
    }
    float at(std::int64_t row, std::int64_t column) const {
        std::uint16_t bits;
        std::memcpy(&bits, memory.data() + row * row_bytes + 2 * column, sizeof bits);
        return number(bits);
    }

    std::int64_t row_bytes;
    guarded_buffer memory;
};

struct tile_product_case {
    std::int64_t rows, steps, queries, panel;
    bf16_matrix a, b; // b: pairs of each query
    guarded_buffer c, factor;

    tile_product_case(generator& random, std::int64_t lanes)
        : rows(draw(random, 0, 70)), steps(draw(random, 0, 40)), queries(draw(random, 1, lanes)),
          panel(lanes), a(random, rows, 2 * steps, draw(random, 0, 9)),
          b(random, steps, 2 * lanes, 0),
          c(static_cast<std::size_t>(rows * panel) * sizeof(float), guarded_buffer::edge::back),
          factor(static_cast<std::size_t>(panel) * sizeof(float), guarded_buffer::edge::back) {
        for (std::int64_t i = 0; i < rows * panel; ++i) put(c, i, draw(random, -99, 99));
        for (std::int64_t q = 0; q < panel; ++q) put(factor, q, 1 << draw(random, 0, 4));
    }
    static void put(const guarded_buffer& to, std::int64_t i, std::int64_t value) {
        const auto as_float = static_cast<float>(value);
        std::memcpy(to.data() + 4 * i, &as_float, sizeof as_float);
    }
    static float get(const guarded_buffer& from, std::int64_t i) {
        float value;
        std::memcpy(&value, from.data() + 4 * i, sizeof value);
        return value;
    }

    float half(std::int64_t row, std::int64_t query, std::int64_t first, int odd) const {
        float sum = 0;
        for (std::int64_t k = first; k < std::min(steps, first + 16); ++k)
            sum = flushed(
                std::fma(flushed(a.at(row, 2 * k + odd)), flushed(b.at(k, 2 * query + odd)), sum));
        return sum;
    }
    float expected(std::int64_t row, std::int64_t query, bool goes_on, bool has_factor) const {
        const float before = get(c, row * panel + query);
        float sum = goes_on ? before : 0;
        for (std::int64_t k = 0; k < steps; k += 16)
            sum = flushed(flushed(sum) + flushed(half(row, query, k, 0) + half(row, query, k, 1)));
        return has_factor ? before * get(factor, query) + sum : sum;
    }
};

void expect_product(const attention_kernels& kernels, generator& random) {
    const tile_product_case what(random, kernels.panel());
    const bool goes_on = one_in(random, 3), has_factor = !goes_on && one_in(random, 2);
    std::vector<float> wanted;
    for (std::int64_t row = 0; row < what.rows; ++row)
        for (std::int64_t q = 0; q < what.queries; ++q)
            wanted.push_back(what.expected(row, q, goes_on, has_factor));
    kernels.enter();
    kernels.multiply_pairs(
        {what.a.memory.data(), what.a.row_bytes, 4, what.rows, what.steps,
         reinterpret_cast<const float*>(what.b.memory.data()),
         reinterpret_cast<float*>(what.c.data()),
         has_factor ? reinterpret_cast<const float*>(what.factor.data()) : nullptr, what.queries,
         goes_on});
    kernels.leave();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const float found =
            tile_product_case::get(what.c, at / what.queries * what.panel + at % what.queries);
        ASSERT_TRUE(found == wanted[i] || (std::isnan(found) && std::isnan(wanted[i])))
            << found << ", expected " << wanted[i] << ": row " << at / what.queries << ", query "
            << at % what.queries << " of " << what.rows << 'x' << what.steps << 'x' << what.queries
            << ", goes on " << goes_on << ", factor " << has_factor;
    }
}

TEST(tile_products, are_those_of_the_instruction) {
    ASSERT_FALSE(tile_tables().empty());
    generator random(base_seed());
    for (const kernel_table* table : tile_tables())
        for (int i = 0; i < 300; ++i) {
            SCOPED_TRACE(to_string(table->base));
            ASSERT_NO_FATAL_FAILURE(expect_product(table->attention, random));
        }
}

#if defined(__x86_64__)

// The instructions themselves, where the CPU has what is around them.
TEST(tile_products, are_those_of_the_instructions_that_trap) {
    const auto supported = supported_isas(native_cpu());
    if (supported.back() != isa::avx512) GTEST_SKIP() << "needs AVX-512, and no AMX";
    const auto tables = kernel_tables();
    const auto amx = std::ranges::find(tables, isa::amx, &kernel_table::target);
    ASSERT_NE(amx, tables.end());
    generator random(base_seed());
    const trapped_tiles tiles;
    for (int i = 0; i < 300; ++i) {
        ASSERT_NO_FATAL_FAILURE(expect_product((*amx)->attention, random));
        ASSERT_FALSE(tiles.are_configured());
    }
    EXPECT_GT(tiles.products(), 1000);
}

#endif

// Rows two by two, in the order that the table's products read.
TEST(pairs_of_rows, are_where_load_pairs_says) {
    const auto supported = supported_isas(native_cpu());
    generator random(base_seed());
    for (const kernel_table* table : kernel_tables())
        for (int i = 0; i < 200 && std::ranges::count(supported, table->base) > 0; ++i) {
            const std::int64_t rows = draw(random, 1, 70), columns = draw(random, 1, 70);
            const bf16_matrix from(random, rows, columns, draw(random, 0, 9));
            const guarded_buffer to(static_cast<std::size_t>((rows + 1) / 2 * columns * 4),
                                    guarded_buffer::edge::back);
            const strided_matrix made =
                table->attention.load_pairs({from.memory.data(), row_type::bf16, from.row_bytes, 2},
                                            rows, columns, reinterpret_cast<float*>(to.data()));
            for (std::int64_t r = 0; r < (rows + 1) / 2 * 2; ++r)
                for (std::int64_t c = 0; c < columns; ++c) {
                    std::uint16_t found;
                    std::memcpy(&found,
                                made.first + r / 2 * made.row_bytes + c * made.column_bytes +
                                    r % 2 * 2,
                                sizeof found);
                    ASSERT_EQ(found, r < rows ? bf16(from.at(r, c)) : 0)
                        << to_string(table->target) << ' ' << to_string(table->base) << ' ' << r
                        << ' ' << c << " of " << rows << 'x' << columns;
                }
        }
}

} // namespace
} // namespace maskwise::test
