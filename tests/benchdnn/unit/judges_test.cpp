// Tests the code that judges results: number conversions, guarded buffers, masks, the harness's
// comparison and the driver's comparison. test_client.py plants faults in the library's calls. The
// batches compare the oracle's operators with oneDNN.

#include "compare/compare.hpp"
#include "data/mask.hpp"
#include "data/strided.hpp"
#include "driver/draw.hpp"
#include "driver/fill.hpp"
#include "driver/rule.hpp"
#include "oracle/oracle.hpp"
#include "support/guarded_buffer.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace maskwise::bench {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

logical_tensor port(std::size_t id, data_type type, dims shape) {
    logical_tensor t;
    t.id = id;
    t.dtype = type;
    t.shape = std::move(shape);
    return t;
}

op make_op(std::size_t id, std::string kind, std::vector<logical_tensor> in,
           std::vector<logical_tensor> out, std::map<std::string, attribute> attrs = {}) {
    return {id, "op", std::move(kind), std::move(attrs), std::move(in), std::move(out)};
}

// Attention. Tensor ids: query 0, key 1, products 2, divisor 3, quotients 4, mask 5, sums 7,
// weights 8, value 9, result 10.
graph attention(data_type type, const dims& mask) {
    const dims scores{1, 2, 6, 6}, rows{1, 2, 6, 4};
    const auto t = [&](std::size_t id, const dims& shape) { return port(id, type, shape); };
    graph g;
    g.ops = {
        make_op(0, "MatMul", {t(0, rows), t(1, rows)}, {t(2, scores)}, {{"transpose_b", true}}),
        make_op(1, "Divide", {t(2, scores), t(3, {})}, {t(4, scores)}),
        make_op(2, "Add", {t(4, scores), t(5, mask)}, {t(7, scores)}),
        make_op(3, "SoftMax", {t(7, scores)}, {t(8, scores)},
                {{"axis", std::int64_t{-1}}, {"mode", std::string("inf_as_zero")}}),
        make_op(4, "MatMul", {t(8, scores), t(9, rows)}, {t(10, rows)})};
    return g;
}

TEST(numbers, every_16_bit_pattern_survives_conversion_to_double_and_back) {
    for (const data_type type : {data_type::f16, data_type::bf16})
        for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
            const auto half = static_cast<std::uint16_t>(bits);
            std::byte before[2], after[2];
            std::memcpy(before, &half, 2);
            const double value = load_number(type, before);
            store_number(type, value, after);
            if (std::isnan(value)) continue; // a conversion drops NaN payloads
            EXPECT_EQ(std::memcmp(before, after, 2), 0) << bits;
        }
}

TEST(numbers, round_to_nearest_even_and_saturate) {
    const auto round = [](data_type type, double value) {
        std::byte bytes[8];
        store_number(type, value, bytes);
        return load_number(type, bytes);
    };
    EXPECT_EQ(round(data_type::f16, 1 + 0x1p-11), 1.0);
    EXPECT_EQ(round(data_type::f16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);
    EXPECT_EQ(round(data_type::f16, 65519.0), 65504.0);
    EXPECT_TRUE(std::isinf(round(data_type::f16, 65520.0)));
    EXPECT_EQ(round(data_type::f16, 0x1p-25), 0.0);
    EXPECT_EQ(round(data_type::f16, 0x1.8p-24), 0x1p-23);
    EXPECT_EQ(round(data_type::bf16, 1 + 0x1p-8), 1.0);
    EXPECT_EQ(round(data_type::bf16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
    EXPECT_EQ(round(data_type::s8, 200), 127);
    EXPECT_EQ(round(data_type::u8, 2.5), 2);
}

TEST(buffers, show_every_write_outside_the_elements) {
    test::guarded_buffer buffer(100, test::guarded_buffer::edge::back);
    buffer.bytes()[99] = std::byte{1};
    EXPECT_TRUE(buffer.intact());
    EXPECT_DEATH(*(buffer.data() + 100) = std::byte{1}, "");
    *(buffer.data() - 1) = std::byte{1};
    EXPECT_FALSE(buffer.intact());
    const test::guarded_buffer empty(0, test::guarded_buffer::edge::back);
    EXPECT_DEATH(*empty.data() = std::byte{1}, "");
    const std::vector<std::byte> before(24);
    std::vector<std::byte> now = before;
    now[4] = std::byte{1}; // in the gap after the view's first element
    EXPECT_EQ(changed_outside(now, before, {3}, {2}, 4), 1U);
}

TEST(masks, have_the_number_of_trues_of_their_kind) {
    const auto count_true = [](const char* name) {
        const tensor mask = make_mask(name, {100, 100}, true, 3);
        return std::ranges::count_if(mask.bytes, [](std::byte b) { return b != std::byte{0}; });
    };
    EXPECT_EQ(count_true("causal"), 5050);
    EXPECT_EQ(count_true("ones"), 10000);
    EXPECT_EQ(count_true("zeros"), 0);
    EXPECT_NEAR(static_cast<double>(count_true("random")), 5000, 300);
}

TEST(compare, notices_every_bit_if_exact) {
    tolerance exact;
    exact.exact = true;
    const tensor zero = from_doubles(data_type::f32, {1}, {0.0});
    const comparison c = compare(zero, from_doubles(data_type::f32, {1}, {-0.0}), exact);
    EXPECT_EQ(compare(zero, zero, exact).errors, 0U);
    EXPECT_EQ(c.errors, 1U);
    EXPECT_TRUE(test::has(c.first, {"0x80000000"}));
    EXPECT_EQ(compare(tensor(data_type::f32, {4}), tensor(data_type::f32, {5}), {}).errors, 1U);
}

TEST(compare, infinities_and_nan_must_agree) {
    const double values[] = {1, infinity, -infinity, std::nan("")};
    tolerance t;
    t.relative = 1e-5;
    for (const double& expected : values)
        for (const double& actual : values)
            EXPECT_EQ(compare(from_doubles(data_type::f64, {1}, {expected}),
                              from_doubles(data_type::f32, {1}, {actual}), t)
                          .errors,
                      &expected == &actual ? 0U : 1U)
                << expected << ' ' << actual;
}

// Returns the number of errors that `judge` counts if 4096 elements should be 1 and `count` of them
// are off by `difference`.
template <typename Judge>
std::size_t errors_of(std::size_t count, double difference, const Judge& judge) {
    const std::vector<double> ones(4096, 1.0);
    std::vector<double> values = ones;
    for (std::size_t i = 0; i < count; ++i) values[i] += difference;
    return judge(from_doubles(data_type::f64, {4096}, ones),
                 from_doubles(data_type::f32, {4096}, values))
        .errors;
}

TEST(compare, forgives_only_a_few_small_misses) {
    tolerance t;
    t.relative = 0.01;
    t.norm_allowed = true;
    const auto judge = [&t](const tensor& want, const tensor& got) {
        return compare(want, got, t);
    };
    EXPECT_EQ(errors_of(2, 0.05, judge), 0U);
    EXPECT_EQ(errors_of(5, 0.05, judge), 5U); // more than one in 1024
    EXPECT_EQ(errors_of(1, 0.17, judge), 1U); // 17 tolerances; 16 are allowed
    t.norm_allowed = false;
    EXPECT_EQ(errors_of(2, 0.05, judge), 2U);
}

TEST(compare, has_the_tolerance_of_the_coarsest_type) {
    const auto relative = [](data_type type, const char* fpmath) {
        graph g = attention(type, {6, 6});
        g.fpmath_mode = fpmath;
        return tolerance_for(g, g.ops[4].outputs[0], false).relative;
    };
    EXPECT_LT(relative(data_type::f32, "strict"), 1e-4);
    EXPECT_GT(relative(data_type::f32, "bf16"), 0.01);
    EXPECT_LT(relative(data_type::bf16, "strict"), 0.03);
}

TEST(driver, forgives_only_differences_that_benchdnn_forgives) {
    const graph g = attention(data_type::f32, {6, 6});
    const auto errors = [&](std::size_t index, std::size_t count, double difference) {
        const driver::rule rule = driver::rule_for(g, g.ops[index], 0);
        return errors_of(count, difference, [&](const tensor& want, const tensor& got) {
            return driver::compare_as_driver(want, got, rule);
        });
    };
    EXPECT_EQ(errors(4, 4, 1e-6), 0U); // MatMul: 4 of 4096 elements may differ
    EXPECT_EQ(errors(4, 5, 1e-6), 5U);
    EXPECT_EQ(errors(4, 1, 0.19), 0U); // the norm of 4096 ones is 64
    EXPECT_EQ(errors(4, 1, 0.2), 1U);
    EXPECT_EQ(errors(4, 1, infinity), 1U);
    EXPECT_EQ(errors(4, 1, NAN), 1U);
    EXPECT_EQ(errors(3, 100, 1e-6), 0U); // SoftMax: a relative error is allowed
    EXPECT_EQ(errors(3, 100, 2e-6), 100U);
}

TEST(driver, fills_attention_as_benchdnn_does) {
    const graph g = attention(data_type::f32, {1, 1, 6, 6});
    const tensor_map values = driver::fill_inputs(g, fill_inputs(g, {}));
    for (const double x : to_doubles(values.at(0)))
        EXPECT_EQ(x, std::clamp(std::floor(x), -64., 64.));
    const double divisor = to_doubles(values.at(3)).at(0);
    EXPECT_TRUE(divisor == 2 || divisor == 4 || divisor == 8) << divisor;
    const std::vector<double> mask = to_doubles(values.at(5)); // causal, the last row masked
    EXPECT_EQ(mask[0], 0);
    EXPECT_EQ(mask[1], -infinity);
    EXPECT_EQ(std::count(mask.end() - 6, mask.end(), -infinity), 6);
    const driver::product half{data_type::bf16, data_type::bf16, data_type::bf16, 64};
    const auto sparse = driver::draw_operand(half, 0, 4096); // sparse, so that sums are exact
    EXPECT_GT(std::count(sparse.begin(), sparse.end(), 0.0), 4096 / 2);
}

TEST(oracle, names_the_operator_it_lacks) {
    graph g;
    g.ops = {
        make_op(0, "Convolution", {port(0, data_type::f32, {1})}, {port(1, data_type::f32, {1})})};
    EXPECT_EQ(first_op_without_oracle(g), "Convolution");
}

} // namespace
} // namespace maskwise::bench
