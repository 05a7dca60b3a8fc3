#include "unit/support.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace maskwise::bench {
namespace {

using numbers = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();

void expect_near(const numbers& got, const numbers& want, double limit = 1e-12) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], limit) << i;
}

tensor bytes_tensor(data_type type, dims shape, const std::vector<std::uint32_t>& words) {
    tensor t(type, std::move(shape));
    for (std::size_t i = 0; i < words.size(); ++i)
        std::memcpy(t.bytes.data() + i * t.width(), &words[i], t.width());
    return t;
}

TEST(oracle_select, moves_bits_and_takes_any_byte_as_true) {
    // -0.0, a signalling NaN with a payload, a subnormal.
    const tensor src_0 = bytes_tensor(data_type::f32, {3}, {0x80000000U, 0x7fa12345U, 1U});
    const tensor src_1 = bytes_tensor(data_type::f32, {3}, {0x3f800000U, 0xff812345U, 0U});
    tensor cond(data_type::boolean, {3});
    cond.bytes = {std::byte{2}, std::byte{0}, std::byte{0x80}};
    const op o = make_op("Select",
                         {make_tensor(0, data_type::boolean, {3}),
                          make_tensor(1, data_type::f32, {3}), make_tensor(2, data_type::f32, {3})},
                         {make_tensor(3, data_type::f32, {3})});
    const tensor dst = evaluate_op(o, {&cond, &src_0, &src_1}).at(0);
    EXPECT_EQ(dst.dtype, data_type::f32);
    EXPECT_EQ(dst.bytes, bytes_tensor(data_type::f32, {3}, {0x80000000U, 0xff812345U, 1U}).bytes);
}

TEST(oracle_select, broadcasts_in_two_steps) {
    tensor cond(data_type::boolean, {2, 1});
    cond.bytes = {std::byte{1}, std::byte{0}};
    const tensor src_0 = from_doubles(data_type::f16, {3}, {1, 2, 3});
    const tensor src_1 = from_doubles(data_type::f16, {2, 1}, {10, 20});
    op o = make_op("Select",
                   {make_tensor(0, data_type::boolean, {2, 1}), make_tensor(1, data_type::f16, {3}),
                    make_tensor(2, data_type::f16, {2, 1})},
                   {make_tensor(3, data_type::f16, {2, 3})});
    const tensor dst = evaluate_op(o, {&cond, &src_0, &src_1}).at(0);
    EXPECT_EQ(dst.shape, (dims{2, 3}));
    EXPECT_EQ(to_doubles(dst), (numbers{1, 2, 3, 20, 20, 20}));
    o.attrs["auto_broadcast"] = std::string("none");
    EXPECT_THROW(evaluate_op(o, {&cond, &src_0, &src_1}), input_error);
    const tensor wide(data_type::boolean, {5, 2, 3});
    EXPECT_THROW(evaluate_op(make_op("Select", o.inputs, o.outputs), {&wide, &src_0, &src_1}),
                 input_error);
}

TEST(oracle_matmul, multiplies_batches_with_transposes_and_bias) {
    const numbers a{1, 2, 3, 4, 5, 6};
    expect_near(run_f32("MatMul", {{{2, 3}, a}, {{3, 1}, {1, 0, -1}}}, {2, 1}), {-2, -2});
    expect_near(run_f32("MatMul", {{{3, 2}, {1, 4, 2, 5, 3, 6}}, {{1, 3}, {1, 0, -1}}}, {2, 1},
                        {{"transpose_a", true}, {"transpose_b", true}}),
                {-2, -2});
    expect_near(run_f32("MatMul", {{{2, 1, 3}, a}, {{1, 3, 1}, {1, 1, 1}}}, {2, 1, 1}), {6, 15});
    expect_near(
        run_f32("MatMul", {{{1, 2}, {1, 2}}, {{2, 2}, {1, 0, 0, 1}}, {{2}, {10, 20}}}, {1, 2}),
        {11, 22});
}

TEST(oracle_elementwise, computes_in_double_precision) {
    expect_near(run_f32("Divide", {{{2, 1}, {1, 2}}, {{2}, {3, 4}}}, {2, 2}),
                {1.0 / 3, 0.25, 2.0 / 3, 0.5});
    expect_near(run_f32("Subtract", {{{2}, {1, 2}}, {{}, {3}}}, {2}), {-2, -1});
    expect_near(run_f32("Exp", {{{1}, {1}}}, {1}), {std::exp(1.0)});
    expect_near(run_f32("Tanh", {{{1}, {0.5}}}, {1}), {std::tanh(0.5)});
    expect_near(run_f32("Square", {{{1}, {-3}}}, {1}), {9});
    expect_near(run_f32("GreaterEqual", {{{3}, {1, 2, 3}}, {{1}, {2}}}, {3}), {0, 1, 1});
}

TEST(oracle_softmax, normalizes_and_knows_empty_rows) {
    expect_near(
        run_f32("SoftMax", {{{1, 2}, {0, std::log(3.0F)}}}, {1, 2}, {{"axis", std::int64_t{-1}}}),
        {0.25, 0.75}, 1e-7);
    expect_near(run_f32("SoftMax", {{{1, 3}, {-infinity, 2, -infinity}}}, {1, 3},
                        {{"axis", std::int64_t{1}}}),
                {0, 1, 0});
    expect_near(run_f32("SoftMax", {{{1, 2}, {-infinity, -infinity}}}, {1, 2},
                        {{"axis", std::int64_t{1}}, {"mode", std::string("inf_as_zero")}}),
                {0, 0});
    const auto none =
        run_f32("SoftMax", {{{1, 2}, {-infinity, -infinity}}}, {1, 2}, {{"axis", std::int64_t{1}}});
    EXPECT_TRUE(std::isnan(none[0]));
    expect_near(run_f32("SoftMax", {{{2, 2}, {0, 5, 0, 5}}}, {2, 2}, {{"axis", std::int64_t{0}}}),
                {0.5, 0.5, 0.5, 0.5});
}

TEST(oracle_softmax, gives_log_of_the_sum_as_statistics) {
    const tensor src = from_doubles(data_type::f32, {1, 2}, {0, 0});
    const op o =
        make_op("SoftMax", {make_tensor(0, data_type::f32, {1, 2})},
                {make_tensor(1, data_type::bf16, {1, 2}), make_tensor(2, data_type::f32, {1, 1})},
                {{"axis", std::int64_t{-1}}});
    const auto results = evaluate_op(o, {&src});
    EXPECT_EQ(results[0].dtype, data_type::bf16);
    expect_near(to_doubles(results[1]), {std::log(2.0)});
}

TEST(oracle_softmax, backward_is_the_derivative) {
    const numbers y{0.2, 0.3, 0.5};
    expect_near(run_f32("SoftMaxBackward", {{{1, 3}, {1, 0, 0}}, {{1, 3}, y}}, {1, 3},
                        {{"axis", std::int64_t{1}}}),
                {0.2 * 0.8, -0.3 * 0.2, -0.5 * 0.2}, 1e-7);
}

TEST(oracle_reduce, sums_over_axes) {
    const numbers x{1, 2, 3, 4, 5, 6};
    expect_near(
        run_f32("ReduceSum", {{{2, 3}, x}}, {2, 1}, {{"axes", dims{-1}}, {"keep_dims", true}}),
        {6, 15});
    expect_near(run_f32("ReduceSum", {{{2, 3}, x}}, {3}, {{"axes", dims{0}}}), {5, 7, 9});
    expect_near(run_f32("ReduceSum", {{{2, 3}, x}}, {}, {{"axes", dims{0, 1}}}), {21});
}

TEST(oracle_movement, transposes_reshapes_and_counts) {
    const numbers x{1, 2, 3, 4, 5, 6};
    EXPECT_EQ(run_f32("StaticTranspose", {{{2, 3}, x}}, {3, 2}, {{"order", dims{1, 0}}}),
              (numbers{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(run_f32("StaticReshape", {{{2, 3}, x}}, {6}, {{"shape", dims{6}}}), x);
    EXPECT_EQ(run_f32("Reorder", {{{2, 3}, x}}, {2, 3}), x);
    EXPECT_EQ(run_f32("GenIndex", {{{2, 3}, x}}, {2, 3}, {{"axis", std::int64_t{-1}}}),
              (numbers{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(run_f32("GenIndex", {{{2, 3}, x}}, {2, 3}, {{"axis", std::int64_t{0}}}),
              (numbers{0, 0, 0, 1, 1, 1}));
}

TEST(oracle_quantize, rounds_to_even_and_saturates) {
    const tensor src = from_doubles(data_type::f32, {5}, {0.25, 0.75, 1.25, 1000, -1000});
    const op o = make_op("Quantize", {make_tensor(0, data_type::f32, {5})},
                         {make_tensor(1, data_type::u8, {5})},
                         {{"scales", std::vector<float>{0.5F}}, {"zps", dims{3}}});
    EXPECT_EQ(to_doubles(evaluate_op(o, {&src})[0]), (numbers{4, 4, 6, 255, 0}));
}

TEST(oracle_quantize, dequantizes_per_channel_and_per_group) {
    const tensor src = from_doubles(data_type::s8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
    const auto ports = std::vector<logical_tensor>{make_tensor(0, data_type::s8, {2, 4})};
    const auto out = make_tensor(9, data_type::f32, {2, 4});
    const op channel = make_op("Dequantize", ports, {out},
                               {{"qtype", std::string("per_channel")},
                                {"axis", std::int64_t{0}},
                                {"scales", std::vector<float>{1, 2}},
                                {"zps", dims{0, 1}}});
    EXPECT_EQ(to_doubles(evaluate_op(channel, {&src})[0]), (numbers{1, 2, 3, 4, 8, 10, 12, 14}));
    const tensor scales = from_doubles(data_type::f16, {2, 2}, {1, 10, 100, 1000});
    const tensor zeros = from_doubles(data_type::s8, {2, 2}, {1, 0, 0, 0});
    const op group = make_op("DynamicDequantize", ports, {out},
                             {{"qtype", std::string("per_group")},
                              {"group_shape", dims{1, 2}},
                              {"axis", std::int64_t{1}}});
    EXPECT_EQ(to_doubles(evaluate_op(group, {&src, &scales, &zeros})[0]),
              (numbers{0, 1, 30, 40, 500, 600, 7000, 8000}));
}

TEST(oracle, keeps_f32_arithmetic_in_double_until_it_is_compared) {
    graph g;
    const auto f32 = [](std::size_t id) { return make_tensor(id, data_type::f32, {1}); };
    g.ops = {make_op("Divide", {f32(0), f32(1)}, {f32(2)}),
             make_op("Multiply", {f32(2), f32(1)}, {f32(3)})};
    tensor_map inputs;
    inputs.emplace(0, from_doubles(data_type::f32, {1}, {1}));
    inputs.emplace(1, from_doubles(data_type::f32, {1}, {3}));
    const tensor_map out = evaluate(g, inputs, {2, 3});
    EXPECT_EQ(out.at(2).dtype, data_type::f64);
    EXPECT_EQ(to_doubles(out.at(2))[0], 1.0 / 3);
    EXPECT_EQ(to_doubles(out.at(3))[0], 1.0);
}

TEST(oracle, names_the_operator_it_lacks) {
    graph g;
    const auto f32 = [](std::size_t id) { return make_tensor(id, data_type::f32, {1}); };
    g.ops = {make_op("Convolution", {f32(0), f32(1)}, {f32(2)})};
    EXPECT_EQ(first_op_without_oracle(g), "Convolution");
}

} // namespace
} // namespace maskwise::bench
