// Tests every element type that rows read and write, on every instruction set of this CPU.

#include "exec/run_rows.hpp"
#include "support/numbers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace maskwise {
namespace {

class row_types : public testing::TestWithParam<isa> {};

// Runs rows without operands or steps, which only converts elements.
template <typename From, typename To>
std::vector<To> converted(const std::vector<From>& from, data_type type, data_type result,
                          isa target) {
    const dims shape{1, static_cast<std::int64_t>(from.size())};
    row_desc desc;
    desc.scores = dense_desc(type, shape);
    desc.result = dense_desc(result, shape);
    std::vector<To> to(from.size());
    run_rows(make_row_plan(desc, target), {from.data(), to.data(), {}});
    return to;
}

bool is_nan_half(std::uint16_t half) {
    return (half & 0x7FFF) > 0x7C00;
}

TEST_P(row_types, reads_and_writes_every_f16) {
    std::vector<std::uint16_t> halves(1 << 16);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
    const auto values =
        converted<std::uint16_t, float>(halves, data_type::f16, data_type::f32, GetParam());
    const auto back =
        converted<float, std::uint16_t>(values, data_type::f32, data_type::f16, GetParam());
    for (std::size_t i = 0; i < halves.size(); ++i) {
        if (is_nan_half(halves[i])) {
            ASSERT_TRUE(std::isnan(values[i]) && is_nan_half(back[i])) << i;
            continue;
        }
        ASSERT_EQ(values[i], test::decode(halves[i], test::element::f16)) << i;
        ASSERT_EQ(back[i], halves[i]) << i;
    }
}

TEST_P(row_types, reads_the_masked_value_in_every_type) {
    const std::vector<float> scores{1, 2, 3, 4, 5, 6, 7, 8};
    const std::vector<float> wanted{1, 2.5F, 2.5F, 2.5F, 5, 6, 2.5F, 2.5F};
    const std::pair<data_type, std::uint32_t> bits_of_2_5[] = {
        {data_type::f32, 0x40200000}, {data_type::bf16, 0x4020}, {data_type::f16, 0x4100}};
    for (const auto& [type, bits] : bits_of_2_5) {
        row_desc desc;
        desc.scores = desc.result = dense_desc(data_type::f32, {2, 4});
        desc.operands = {dense_desc(type, {})};
        desc.steps = {causal_select(0)};
        std::vector<float> result(scores.size());
        const void* operands[] = {&bits};
        run_rows(make_row_plan(desc, GetParam()), {scores.data(), result.data(), operands});
        EXPECT_EQ(result, wanted) << to_string(type);
    }
}

// Rows without steps copy bits, with plain and with streaming stores.
TEST_P(row_types, keeps_the_bits_of_a_signalling_nan) {
    constexpr std::int64_t columns = 64;
    constexpr std::uint32_t signalling = 0x7F812345;
    row_desc desc;
    desc.scores = desc.result = dense_desc(data_type::f32, {1, columns});
    for (const std::int64_t stream_from : {std::int64_t{0}, std::int64_t{1} << 40}) {
        std::vector<std::uint32_t> scores(columns, signalling);
        alignas(64) std::array<std::uint32_t, columns> result{};
        run_rows(make_row_plan(desc, GetParam(), stream_from), {scores.data(), result.data(), {}});
        EXPECT_TRUE(std::equal(scores.begin(), scores.end(), result.begin())) << stream_from;
    }
}

// Only aligned full vectors use streaming stores, so the test shifts the result.
TEST_P(row_types, are_the_same_with_streaming_stores) {
    constexpr std::int64_t columns = 777;
    std::vector<float> scores(columns);
    for (std::size_t i = 0; i < scores.size(); ++i)
        scores[i] = static_cast<float>(i % 301) * 0.37F - 40;
    for (const data_type type :
         {data_type::f32, data_type::bf16, data_type::f16, data_type::i8, data_type::u8}) {
        row_desc desc;
        desc.scores = dense_desc(data_type::f32, {1, columns});
        desc.result = dense_desc(type, {1, columns});
        if (width_bytes(type) == 1) desc.quantize = row_quantize{0.25F, 3};
        for (std::size_t shift = 0; shift < 64; shift += width_bytes(type)) {
            alignas(64) std::array<std::byte, 64 + 4 * columns + 64> plain{}, streamed{};
            run_rows(make_row_plan(desc, GetParam()), {scores.data(), &plain[shift], {}});
            run_rows(make_row_plan(desc, GetParam(), 0), {scores.data(), &streamed[shift], {}});
            ASSERT_EQ(plain, streamed) << to_string(type) << " at " << shift;
        }
    }
}

TEST_P(row_types, rounds_to_the_nearest_f16) {
    // Ties round to even. The largest finite number is 65504, and the smallest positive number is
    // 2^-24.
    const std::vector<std::pair<float, std::uint16_t>> cases = {
        {1.0F + 0x1p-11F, 0x3C00}, {1.0F + 0x3p-11F, 0x3C02}, {-1.0F - 0x1.8p-11F, 0xBC01},
        {65504.0F, 0x7BFF},        {65519.0F, 0x7BFF},        {65520.0F, 0x7C00},
        {-1e30F, 0xFC00},          {0x1p-24F, 0x0001},        {0x1p-25F, 0x0000},
        {0x1.8p-25F, 0x0001},      {-0x1.8p-24F, 0x8002},     {0x1.FFFp-15F, 0x0400},
        {0x1.FF8p-15F, 0x03FF},    {-0.0F, 0x8000},           {1e-30F, 0x0000},
        {0x1.FFEp0F, 0x4000},
    };
    std::vector<float> values;
    for (const auto& [value, wanted] : cases) values.push_back(value);
    const auto halves =
        converted<float, std::uint16_t>(values, data_type::f32, data_type::f16, GetParam());
    for (std::size_t i = 0; i < cases.size(); ++i)
        EXPECT_EQ(halves[i], cases[i].second) << cases[i].first;
}

INSTANTIATE_TEST_SUITE_P(every_target, row_types, testing::ValuesIn(supported_isas(native_cpu())),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

} // namespace
} // namespace maskwise
