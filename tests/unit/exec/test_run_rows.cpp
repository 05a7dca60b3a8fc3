// Rows through random chains, every instruction set, against the same chain in double precision.

#include "exec/run_rows.hpp"
#include "support/guarded_buffer.hpp"
#include "support/numbers.hpp"
#include "support/operations.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace maskwise {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// One chain on one matrix of scores; operands are a scalar, a row and a whole matrix.
struct example {
    std::int64_t heads, rows, columns;
    std::vector<row_step> steps;
    std::int64_t causal_offset = 0;
};

enum operand_number { scalar_operand, row_operand_number, matrix_operand, cond_operand };

struct data {
    std::vector<float> scores, scalar, row, matrix;
    std::vector<std::byte> cond;
};

data random_data(const example& what, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0F, 3.0F);
    const auto fill = [&](std::int64_t count) {
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& value : values) value = normal(random);
        return values;
    };
    const std::int64_t all = what.heads * what.rows * what.columns;
    data made{fill(all), {1.75F}, fill(what.columns), fill(all), {}};
    made.cond.resize(static_cast<std::size_t>(what.rows * what.columns));
    for (auto& byte : made.cond) byte = std::byte{static_cast<std::uint8_t>(random() % 3)};
    return made;
}

row_desc describe(const example& what) {
    const dims shape{what.heads, what.rows, what.columns};
    row_desc desc;
    desc.scores = dense_desc(data_type::f32, shape);
    desc.result = desc.scores;
    desc.operands = {dense_desc(data_type::f32, {}), dense_desc(data_type::f32, {what.columns}),
                     dense_desc(data_type::f32, shape)};
    desc.steps = what.steps;
    for (const row_step& step : what.steps)
        if (step.cond == cond_operand && desc.operands.size() == cond_operand)
            desc.operands.push_back(dense_desc(data_type::boolean, {what.rows, what.columns}));
    return desc;
}

double operand_at(const data& from, int operand, std::size_t element, std::size_t column) {
    if (operand == scalar_operand) return from.scalar[0];
    return operand == row_operand_number ? from.row[column] : from.matrix[element];
}

double combined(double a, double b, row_operator op) {
    switch (op) {
    case row_operator::add:
        return a + b;
    case row_operator::subtract:
        return a - b;
    case row_operator::multiply:
        return a * b;
    case row_operator::divide:
        return a / b;
    case row_operator::exp:
        return std::exp(a);
    case row_operator::tanh:
        return std::tanh(a);
    case row_operator::round_bf16:
        return test::round_to(a, test::bf16_format);
    case row_operator::round_f16:
        return test::round_to(a, test::f16_format);
    default:
        return b;
    }
}

struct wanted_row {
    std::vector<double> values;
    double statistics = 0;
};

double stepped(const row_step& step, double value, double other, bool cond, bool is_kept) {
    if (step.kind == row_step_kind::select_causal) return is_kept ? value : other;
    if (step.op == row_operator::select_kept) return cond ? value : other;
    if (step.op == row_operator::select_masked) return cond ? other : value;
    return combined(value, other, step.op);
}

wanted_row expected_row(const example& what, const data& from, std::int64_t number) {
    const auto columns = static_cast<std::size_t>(what.columns);
    const auto first = static_cast<std::size_t>(number) * columns;
    const std::int64_t in_matrix = number % what.rows;
    wanted_row wanted;
    auto& row = wanted.values;
    row.assign(from.scores.begin() + static_cast<std::ptrdiff_t>(first),
               from.scores.begin() + static_cast<std::ptrdiff_t>(first + columns));
    for (const row_step& step : what.steps) {
        if (step.kind == row_step_kind::soft_max) {
            wanted.statistics = test::soft_max(row.data(), row.size(), 1, step.inf_as_zero);
            continue;
        }
        for (std::size_t c = 0; c < columns; ++c) {
            const double other = operand_at(from, step.operand, first + c, c);
            const auto byte = from.cond[static_cast<std::size_t>(in_matrix) * columns + c];
            const bool is_kept = in_matrix + what.causal_offset >= static_cast<std::int64_t>(c);
            row[c] = stepped(step, row[c], other, byte != std::byte{0}, is_kept);
        }
    }
    return wanted;
}

row_step combine(row_operator op, int operand) {
    return {row_step_kind::elementwise, op, operand, -1, false};
}
row_step select(row_operator op, int operand) {
    return {row_step_kind::elementwise, op, operand, cond_operand, false};
}
row_step causal(int operand) {
    return {row_step_kind::select_causal, row_operator::add, operand, -1, false};
}
row_step soft_max_step(bool inf_as_zero) {
    return {row_step_kind::soft_max, row_operator::add, -1, -1, inf_as_zero};
}

const std::vector<std::vector<row_step>>& chains() {
    using enum row_operator;
    static const std::vector<std::vector<row_step>> all = {
        {select(select_kept, scalar_operand)},
        {select(select_masked, matrix_operand)},
        {combine(divide, scalar_operand), select(select_kept, scalar_operand),
         combine(add, row_operand_number), soft_max_step(true)},
        {combine(multiply, scalar_operand), causal(scalar_operand), soft_max_step(true)},
        {causal(scalar_operand), combine(subtract, matrix_operand), soft_max_step(false)},
        {combine(add, matrix_operand), select(select_masked, row_operand_number),
         soft_max_step(false)},
        {combine(divide, scalar_operand), combine(tanh, -1), combine(multiply, scalar_operand),
         select(select_kept, scalar_operand), soft_max_step(true)},
        {combine(tanh, -1), causal(scalar_operand), combine(exp, -1)},
        {combine(round_bf16, -1), combine(multiply, matrix_operand)},
        {combine(round_f16, -1), select(select_kept, scalar_operand), combine(add, scalar_operand)},
    };
    return all;
}

// Sums of f32 lose a little with every thousand columns where a vector is one element.
void expect_near(const example& what, double got, double want, std::int64_t row,
                 std::int64_t column) {
    const double allowed = what.columns > 4000 ? 1e-5 : 2e-6;
    if (std::isnan(want))
        ASSERT_TRUE(std::isnan(got)) << "row " << row << " column " << column;
    else
        ASSERT_NEAR(got, want, allowed * (1 + std::abs(want)))
            << "row " << row << " column " << column;
}

// Rows end at a page that may not be read or written.
void check(const example& what, isa target, unsigned seed, float scalar) {
    data from = random_data(what, seed);
    from.scalar[0] = scalar;
    row_desc desc = describe(what);
    const bool has_statistics = what.steps.back().kind == row_step_kind::soft_max;
    if (has_statistics) desc.statistics = dense_desc(data_type::f32, {what.heads, what.rows, 1});
    const row_plan plan = make_row_plan(desc, target);
    const std::size_t bytes = from.scores.size() * sizeof(float);
    test::guarded_buffer memory(bytes, test::guarded_buffer::edge::back);
    std::memcpy(memory.data(), from.scores.data(), bytes);
    test::guarded_buffer cond(from.cond.size(), test::guarded_buffer::edge::back);
    std::memcpy(cond.data(), from.cond.data(), from.cond.size());
    const void* operands[] = {from.scalar.data(), from.row.data(), from.matrix.data(), cond.data()};
    std::vector<float> statistics(static_cast<std::size_t>(what.heads * what.rows));
    run_rows(plan, {memory.data(), memory.data(), std::span(operands, plan.operands.size()),
                    statistics.data(), what.causal_offset});

    const auto* actual = reinterpret_cast<const float*>(memory.data());
    for (std::int64_t row = 0; row < what.heads * what.rows; ++row) {
        const wanted_row wanted = expected_row(what, from, row);
        for (std::int64_t c = 0; c < what.columns; ++c)
            expect_near(what, actual[row * what.columns + c],
                        wanted.values[static_cast<std::size_t>(c)], row, c);
        if (has_statistics)
            expect_near(what, statistics[static_cast<std::size_t>(row)], wanted.statistics, row,
                        -1);
    }
}

class run_rows_test : public testing::TestWithParam<isa> {};

TEST_P(run_rows_test, agrees_with_double_precision) {
    unsigned seed = 1;
    for (const auto& steps : chains())
        for (const std::int64_t columns : {1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 1000})
            for (const std::int64_t offset : {0, 5, -3})
                check({2, 7, columns, steps, offset}, GetParam(), ++seed, -1.25F);
}

TEST_P(run_rows_test, masks_with_minus_infinity) {
    for (const bool inf_as_zero : {true, false})
        for (const std::int64_t offset : {-10, -1, 0, 3})
            for (const std::int64_t columns : {std::int64_t{20}, held_row_columns + 5})
                check({2, 6, columns, {causal(scalar_operand), soft_max_step(inf_as_zero)}, offset},
                      GetParam(), 3, static_cast<float>(-infinity));
}

// Nothing but NaN and -infinity: the NaN has no part in the maximum, and must not vanish.
TEST_P(run_rows_test, keeps_a_nan_among_minus_infinities) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(), hidden = -INFINITY;
    for (const std::int64_t columns : {std::int64_t{8}, held_row_columns + 5}) {
        std::vector<float> scores(static_cast<std::size_t>(2 * columns), hidden);
        scores[3] = nan;
        row_desc desc;
        desc.scores = desc.result = dense_desc(data_type::f32, {2, columns});
        desc.steps = {soft_max_step(true)};
        std::vector<float> result(scores.size());
        run_rows(make_row_plan(desc, GetParam()), {scores.data(), result.data(), {}});
        for (std::size_t i = 0; i < result.size(); ++i) {
            const bool is_first_row = i < static_cast<std::size_t>(columns);
            EXPECT_EQ(std::isnan(result[i]), is_first_row) << i;
            EXPECT_EQ(result[i] == 0.0F, !is_first_row) << i;
        }
    }
}

TEST_P(run_rows_test, takes_rows_longer_than_its_buffers) {
    unsigned seed = 7;
    for (const auto& steps : chains())
        for (const std::int64_t columns :
             {held_row_columns, held_row_columns + 1, 3 * held_row_columns + 77})
            check({1, 2, columns, steps, held_row_columns / 2}, GetParam(), ++seed, -1.25F);
}

TEST_P(run_rows_test, runs_many_rows_on_all_threads) {
    check({16, 64, 200, chains()[2], 0}, GetParam(), 99, -2.0F);
}

// What leaves as bytes is within half a unit of the value, saturated.
TEST_P(run_rows_test, quantizes) {
    const example what{1, 3, 100, {combine(row_operator::multiply, scalar_operand)}, 0};
    data from = random_data(what, 5);
    from.scalar[0] = 100.0F;
    for (const data_type type : {data_type::i8, data_type::u8}) {
        row_desc desc = describe(what);
        desc.result = dense_desc(type, desc.scores.extents);
        desc.scale = 0.25F;
        desc.zero_point = 7;
        std::vector<std::byte> result(from.scores.size());
        const void* operands[] = {from.scalar.data(), from.row.data(), from.matrix.data()};
        run_rows(make_row_plan(desc, GetParam()), {from.scores.data(), result.data(), operands});
        for (std::size_t i = 0; i < result.size(); ++i) {
            const double least = type == data_type::i8 ? -128 : 0;
            const double wanted = std::clamp(from.scores[i] * 100.0 * 0.25 + 7, least, least + 255);
            const int byte = std::to_integer<int>(result[i]);
            const double got = type == data_type::i8 ? static_cast<std::int8_t>(byte) : byte;
            ASSERT_NEAR(got, wanted, 0.5001) << i;
        }
    }
}

// Rows without operands or arithmetic: from one type to another.
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

TEST_P(run_rows_test, reads_and_writes_every_f16) {
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
        ASSERT_EQ(values[i], test::decode(halves[i], test::f16_format)) << i;
        ASSERT_EQ(back[i], halves[i]) << i;
    }
}

TEST_P(run_rows_test, reads_the_masked_value_in_every_type) {
    const std::vector<float> scores{1, 2, 3, 4, 5, 6, 7, 8};
    const std::vector<float> wanted{1, 2.5F, 2.5F, 2.5F, 5, 6, 2.5F, 2.5F};
    const std::pair<data_type, std::uint32_t> bits_of_2_5[] = {
        {data_type::f32, 0x40200000}, {data_type::bf16, 0x4020}, {data_type::f16, 0x4100}};
    for (const auto& [type, bits] : bits_of_2_5) {
        row_desc desc;
        desc.scores = desc.result = dense_desc(data_type::f32, {2, 4});
        desc.operands = {dense_desc(type, {})};
        desc.steps = {causal(scalar_operand)};
        std::vector<float> result(scores.size());
        const void* operands[] = {&bits};
        run_rows(make_row_plan(desc, GetParam()), {scores.data(), result.data(), operands});
        EXPECT_EQ(result, wanted) << to_string(type);
    }
}

// What is not computed with is moved, past the caches, too.
TEST_P(run_rows_test, keeps_the_bits_of_a_signalling_nan) {
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

TEST_P(run_rows_test, rounds_to_the_nearest_f16) {
    // Halfway cases go to the even one, the last finite number is 65504, the least is 2^-24.
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

// One row of f32 through the steps, without operands.
std::vector<float> through(const std::vector<float>& row, const std::vector<row_step>& steps,
                           isa target) {
    row_desc desc;
    desc.scores = desc.result =
        dense_desc(data_type::f32, {1, static_cast<std::int64_t>(row.size())});
    desc.steps = steps;
    std::vector<float> result(row.size());
    run_rows(make_row_plan(desc, target), {row.data(), result.data(), {}});
    return result;
}

TEST_P(run_rows_test, exponentials_are_infinity_and_zero_and_nan_where_they_should) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> row = {0,    1,    -1,    88.7F, 89,   104,    104.5F, 178, 400,
                                    1000, 1e9F, 3e38F, inf,   -inf, -3e38F, -105,   NAN, -NAN};
    const auto got = through(row, {combine(row_operator::exp, -1)}, GetParam());
    for (std::size_t i = 0; i < row.size(); ++i) {
        const float wanted = std::exp(row[i]);
        if (std::isnan(wanted))
            EXPECT_TRUE(std::isnan(got[i])) << row[i];
        else if (std::isinf(wanted))
            EXPECT_EQ(got[i], wanted) << row[i];
        else
            EXPECT_NEAR(got[i], wanted, 1e-6 * std::abs(wanted)) << row[i];
    }
}

// Whatever the bits behind its exponent: memory that was never written is often all ones.
TEST_P(run_rows_test, a_nan_makes_its_whole_row_nan) {
    for (const std::uint32_t bits : {0x7FC00000U, 0x7FC00001U, 0x7F800001U, 0xFFFFFFFFU})
        for (const std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{32}}) {
            std::vector<float> row(33, 0.5F);
            std::memcpy(&row[at], &bits, sizeof bits);
            for (const float value : through(row, {soft_max_step(false)}, GetParam()))
                ASSERT_TRUE(std::isnan(value)) << std::hex << bits << " at " << at;
        }
}

INSTANTIATE_TEST_SUITE_P(every_target, run_rows_test,
                         testing::ValuesIn(supported_isas(native_cpu())),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

// As many steps, or operands, as there may be and no more.
TEST(row_plan, has_room_for_so_many) {
    row_desc desc = describe({1, 2, 8, {}});
    desc.steps.assign(max_row_actions, combine(row_operator::exp, -1));
    desc.operands.assign(max_row_operands, dense_desc(data_type::f32, {}));
    EXPECT_NO_THROW(make_row_plan(desc, isa::scalar));
    row_desc more_steps = desc, more_operands = desc;
    more_steps.steps.push_back(desc.steps[0]);
    more_operands.operands.push_back(desc.operands[0]);
    EXPECT_THROW(make_row_plan(more_steps, isa::scalar), invalid_argument);
    EXPECT_THROW(make_row_plan(more_operands, isa::scalar), invalid_argument);
}

TEST(row_plan, refuses_other_shapes) {
    row_desc desc = describe({1, 2, 8, {}});
    desc.result = dense_desc(data_type::f32, {1, 2, 9});
    EXPECT_THROW(make_row_plan(desc, isa::scalar), invalid_argument);
    desc = {};
    desc.scores = desc.result = dense_desc(data_type::f32, {});
    EXPECT_THROW(make_row_plan(desc, isa::scalar), invalid_argument);
}

TEST(row_plan, prints_one_line) {
    row_desc desc = describe({3, 2, 8, {causal(scalar_operand), soft_max_step(false)}});
    EXPECT_EQ(to_string(make_row_plan(desc, isa::scalar)), "6 rows of 8: select_causal soft_max");
    desc.statistics = dense_desc(data_type::f32, {3, 2, 1});
    for (const data_type type : {data_type::i8, data_type::u8}) {
        desc.result = dense_desc(type, {3, 2, 8});
        EXPECT_EQ(to_string(make_row_plan(desc, isa::scalar)),
                  "6 rows of 8: select_causal soft_max statistics quantize");
    }
}

// 6 rows of 8 scores and results of 4 bytes each.
TEST(row_plan, streams_from_the_threshold_on) {
    const row_desc desc = describe({3, 2, 8, {}});
    EXPECT_TRUE(make_row_plan(desc, isa::scalar, 384).streams);
    EXPECT_FALSE(make_row_plan(desc, isa::scalar, 390).streams);
    EXPECT_FALSE(make_row_plan(describe({0, 2, 8, {}}), isa::scalar, 0).streams);
}

TEST(row_plan, refuses_what_rows_cannot_be) {
    example what{1, 2, 8, {soft_max_step(true)}, 0};
    row_desc strided = describe(what);
    strided.operands[row_operand_number].strides_bytes[0] = 8;
    EXPECT_THROW(make_row_plan(strided, isa::scalar), invalid_argument);
    row_desc still = describe(what);
    still.scores.strides_bytes[2] = 0;
    EXPECT_THROW(make_row_plan(still, isa::scalar), invalid_argument);
    EXPECT_THROW(
        make_row_plan(describe({1, 1, 8, {soft_max_step(true), combine(row_operator::exp, -1)}, 0}),
                      isa::scalar),
        invalid_argument);
    EXPECT_THROW(make_row_plan(describe({1, 1, 8, {causal(row_operand_number)}, 0}), isa::scalar),
                 invalid_argument);
    row_desc typed = describe(what);
    typed.scores.type = data_type::i32;
    EXPECT_THROW(make_row_plan(typed, isa::scalar), invalid_argument);
    row_desc larger = describe(what);
    larger.operands[matrix_operand].extents = dims{3, 2, 8};
    EXPECT_THROW(make_row_plan(larger, isa::scalar), invalid_argument);
    row_desc overlapping = describe(what);
    overlapping.result.strides_bytes[1] = 4;
    EXPECT_THROW(make_row_plan(overlapping, isa::scalar), invalid_argument);
    for (const auto& statistics :
         {dense_desc(data_type::bf16, {1, 2, 1}), dense_desc(data_type::f32, {1, 2, 8}),
          dense_desc(data_type::f32, {1, 1, 1})}) {
        row_desc with = describe(what);
        with.statistics = statistics;
        EXPECT_THROW(make_row_plan(with, isa::scalar), invalid_argument);
    }
}

} // namespace
} // namespace maskwise
