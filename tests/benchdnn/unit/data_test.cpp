#include "data/filler.hpp"
#include "data/mask.hpp"
#include "data/strided.hpp"
#include "support/guarded_buffer.hpp"
#include "unit/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace maskwise::bench {
namespace {

std::vector<int> as_ints(const tensor& t) {
    std::vector<int> values;
    for (const std::byte b : t.bytes) values.push_back(std::to_integer<int>(b));
    return values;
}

TEST(numbers, every_half_pattern_survives_the_way_to_double_and_back) {
    for (const data_type type : {data_type::f16, data_type::bf16})
        for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
            const auto half = static_cast<std::uint16_t>(bits);
            std::byte in[2];
            std::byte out[2];
            std::memcpy(in, &half, 2);
            const double value = load_number(type, in);
            store_number(type, value, out);
            if (std::isnan(value)) continue; // the payload is the bit movers' business
            EXPECT_EQ(std::memcmp(in, out, 2), 0) << bits;
        }
}

TEST(numbers, halves_round_to_nearest_even) {
    const auto round = [](data_type type, double value) {
        std::byte at[2];
        store_number(type, value, at);
        return load_number(type, at);
    };
    EXPECT_EQ(round(data_type::f16, 1 + 0x1p-11), 1.0);
    EXPECT_EQ(round(data_type::f16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);
    EXPECT_EQ(round(data_type::f16, 65519.0), 65504.0);
    EXPECT_TRUE(std::isinf(round(data_type::f16, 65520.0)));
    EXPECT_EQ(round(data_type::f16, 0x1p-25), 0.0);
    EXPECT_EQ(round(data_type::f16, 0x1.8p-24), 0x1p-23);
    EXPECT_EQ(round(data_type::bf16, 1 + 0x1p-8), 1.0);
    EXPECT_EQ(round(data_type::bf16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
}

TEST(numbers, integers_saturate) {
    std::byte at[8];
    store_number(data_type::s8, 200, at);
    EXPECT_EQ(load_number(data_type::s8, at), 127);
    store_number(data_type::u8, -3, at);
    EXPECT_EQ(load_number(data_type::u8, at), 0);
    store_number(data_type::u8, 2.5, at);
    EXPECT_EQ(load_number(data_type::u8, at), 2);
}

TEST(masks, have_their_structure) {
    EXPECT_EQ(as_ints(make_mask("causal", {2, 3}, false, 1)), (std::vector<int>{1, 1, 0, 1, 1, 1}));
    const tensor padding = make_mask("padding", {5, 1, 2, 8}, false, 7);
    for (int matrix = 0; matrix < 5; ++matrix) {
        const std::byte* rows = padding.bytes.data() + matrix * 16;
        EXPECT_TRUE(std::is_sorted(rows, rows + 8, std::greater<>()));
        EXPECT_EQ(rows[0], std::byte{1});
        EXPECT_TRUE(std::equal(rows, rows + 8, rows + 8)); // the same length for each row
    }
    EXPECT_EQ(as_ints(make_mask("ones", {2}, false, 1)), (std::vector<int>{1, 1}));
    EXPECT_EQ(as_ints(make_mask("zeros", {2}, false, 1)), (std::vector<int>{0, 0}));
    const std::vector<int> random = as_ints(make_mask("random", {10000}, false, 3));
    EXPECT_NEAR(static_cast<double>(std::ranges::count(random, 1)), 5000, 300);
    EXPECT_THROW(make_mask("stripes", {2}, false, 1), input_error);
}

TEST(masks, runs_are_runs) {
    const std::vector<int> runs = as_ints(make_mask("runs", {100000}, false, 3));
    int changes = 0;
    for (std::size_t i = 1; i < runs.size(); ++i) changes += runs[i] != runs[i - 1] ? 1 : 0;
    EXPECT_GT(changes, 100);
    EXPECT_LT(changes, 400);
}

TEST(masks, a_true_may_be_any_byte) {
    const std::vector<int> values = as_ints(make_mask("random", {10000}, true, 3));
    EXPECT_GT(std::set<int>(values.begin(), values.end()).size(), 200U);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(values, 0)), 5000, 300);
}

TEST(strided, scatter_and_gather_are_inverse_for_any_layout) {
    const tensor values = from_doubles(data_type::s32, {2, 3}, {1, 2, 3, 4, 5, 6});
    for (const dims& strides : {dims{3, 1}, dims{1, 2}, dims{10, 3}}) {
        std::vector<std::byte> buffer(span_elems(values.shape, strides) * 4, std::byte{0x77});
        const std::vector<std::byte> before = buffer;
        scatter(values, strides, buffer);
        EXPECT_EQ(gather(data_type::s32, {2, 3}, strides, buffer).bytes, values.bytes);
        EXPECT_EQ(changed_outside(buffer, before, {2, 3}, strides, 4), 0U);
    }
}

TEST(strided, a_write_between_the_elements_is_seen) {
    const std::vector<std::byte> before(24);
    std::vector<std::byte> now = before;
    now[4] = std::byte{1}; // element 1 of a view that steps by two
    EXPECT_EQ(changed_outside(now, before, {3}, {2}, 4), 1U);
}

TEST(guarded_buffer, traps_behind_and_notices_in_front) {
    test::guarded_buffer buffer(100, test::guarded_buffer::edge::back);
    buffer.bytes()[99] = std::byte{1};
    EXPECT_TRUE(buffer.intact());
    EXPECT_DEATH(*(buffer.bytes().data() + 100) = std::byte{1}, "");
    *(buffer.bytes().data() - 1) = std::byte{1};
    EXPECT_FALSE(buffer.intact());
}

TEST(guarded_buffer, an_empty_one_has_an_address_that_traps) {
    const test::guarded_buffer buffer(0, test::guarded_buffer::edge::back);
    ASSERT_NE(buffer.bytes().data(), nullptr);
    EXPECT_DEATH(*buffer.bytes().data() = std::byte{1}, "");
}

TEST(filler, any_bits_include_the_patterns_arithmetic_would_change) {
    const graph g = parse_case(select_text(), "case.json");
    graph big = g;
    for_each_tensor(big, [](logical_tensor& t) {
        if (t.id == 1) t.shape = {1000};
    });
    fill_policy policy;
    policy.any_bits = true;
    const tensor_map values = fill_inputs(big, policy);
    std::size_t nan = 0;
    std::size_t minus_zero = 0;
    for (const double x : to_doubles(values.at(1))) {
        nan += std::isnan(x) ? 1U : 0U;
        minus_zero += x == 0 && std::signbit(x) ? 1U : 0U;
    }
    EXPECT_GT(nan, 10U);
    EXPECT_GT(minus_zero, 10U);
    policy.any_bits = false;
    for (const double x : to_doubles(fill_inputs(big, policy).at(1))) EXPECT_TRUE(std::isfinite(x));
}

TEST(filler, attention_gets_what_it_means) {
    const auto f32 = [](std::size_t id, dims shape) {
        return make_tensor(id, data_type::f32, std::move(shape));
    };
    graph g;
    const logical_tensor cond = make_tensor(1, data_type::boolean, {1, 1, 4, 4});
    const logical_tensor scores = f32(0, {1, 2, 4, 4});
    g.ops = {make_op("Select", {cond, scores, f32(2, {})}, {f32(3, {1, 2, 4, 4})}),
             make_op("SoftMax", {f32(3, {1, 2, 4, 4})}, {f32(4, {1, 2, 4, 4})},
                     {{"mode", std::string("inf_as_zero")}})};
    const tensor_map values = fill_inputs(g, {});
    EXPECT_EQ(as_ints(values.at(1)), as_ints(make_mask("causal", {1, 1, 4, 4}, false, 1)));
    EXPECT_EQ(to_doubles(values.at(2))[0], -std::numeric_limits<double>::infinity());
    g.ops[1].attrs.clear();
    EXPECT_EQ(to_doubles(fill_inputs(g, {}).at(2))[0], -10000.0);
}

} // namespace
} // namespace maskwise::bench
