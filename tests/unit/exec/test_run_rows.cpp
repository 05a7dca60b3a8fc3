// Random rows through a table of chains, every instruction set, against the same chain in double
// precision.

#include "exec/run_rows.hpp"
#include "support/guarded_buffer.hpp"
#include "support/numbers.hpp"
#include "support/operations.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace maskwise {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct row_work {
    std::vector<row_step> steps;
    std::optional<row_soft_max> soft_max = std::nullopt;
};

// One chain on one matrix of scores; operands are a scalar, a row and a whole matrix.
struct example {
    std::int64_t heads, rows, columns;
    row_work work;
    std::int64_t causal_offset = 0;
};

enum operand_number : std::size_t {
    scalar_operand,
    row_operand_number,
    matrix_operand,
    cond_operand
};

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
    desc.steps = what.work.steps;
    desc.soft_max = what.work.soft_max;
    const auto is_select = [](const auto& step) {
        return std::holds_alternative<row_select>(step);
    };
    if (std::ranges::any_of(desc.steps, is_select))
        desc.operands.push_back(dense_desc(data_type::boolean, {what.rows, what.columns}));
    return desc;
}

double operand_at(const data& from, std::size_t operand, std::size_t element, std::size_t column) {
    if (operand == scalar_operand) return from.scalar[0];
    return operand == row_operand_number ? from.row[column] : from.matrix[element];
}

double combined(double a, double b, row_operator op) {
    using enum row_operator;
    using test::operation;
    static const std::map<row_operator, operation> arithmetic{
        {add, operation::add},           {subtract, operation::subtract},
        {multiply, operation::multiply}, {divide, operation::divide},
        {exp, operation::exp},           {tanh, operation::tanh}};
    if (op == round_bf16) return test::round_to(a, test::element::bf16);
    if (op == round_f16) return test::round_to(a, test::element::f16);
    return test::compute(arithmetic.at(op), a, b);
}

struct wanted_row {
    std::vector<double> values;
    double statistics = 0;
};

// What a step makes of one element.
struct stepped {
    const data& from;
    std::size_t element, column; // in the scores, in the row
    bool cond, is_kept;
    double value;

    double side(std::size_t operand) const { return operand_at(from, operand, element, column); }
    double operator()(const row_change& step) const { return combined(value, 0, step.op); }
    double operator()(const row_combine& step) const {
        return combined(value, side(step.side), step.op);
    }
    double operator()(const row_select& step) const {
        return cond == (step.op == row_operator::select_kept) ? value : side(step.side);
    }
    double operator()(const row_causal_select& step) const {
        return is_kept ? value : side(step.side);
    }
};

wanted_row expected_row(const example& what, const data& from, std::int64_t number) {
    const auto columns = static_cast<std::size_t>(what.columns);
    const auto first = static_cast<std::size_t>(number) * columns;
    const std::int64_t in_matrix = number % what.rows;
    wanted_row wanted;
    auto& row = wanted.values;
    row.assign(from.scores.begin() + static_cast<std::ptrdiff_t>(first),
               from.scores.begin() + static_cast<std::ptrdiff_t>(first + columns));
    for (const row_step& step : what.work.steps)
        for (std::size_t c = 0; c < columns; ++c) {
            const auto byte = from.cond[static_cast<std::size_t>(in_matrix) * columns + c];
            const bool is_kept = in_matrix + what.causal_offset >= static_cast<std::int64_t>(c);
            row[c] = std::visit(stepped{from, first + c, c, byte != std::byte{0}, is_kept, row[c]},
                                step);
        }
    if (!what.work.soft_max) return wanted;
    wanted.statistics = test::soft_max(row.data(), row.size(), 1, what.work.soft_max->inf_as_zero);
    return wanted;
}

row_step change(row_operator op) {
    return row_change{op};
}
row_step combine(row_operator op, std::size_t side) {
    return row_combine{op, side};
}
row_step select(row_operator op, std::size_t side) {
    return row_select{op, cond_operand, side};
}
row_step causal(std::size_t side) {
    return row_causal_select{side};
}

const std::vector<row_work>& chains() {
    using enum row_operator;
    constexpr row_soft_max zero{true}, nan{false}; // of a row of -inf
    static const std::vector<row_work> all = {
        {{select(select_kept, scalar_operand)}},
        {{select(select_masked, matrix_operand)}},
        {{combine(divide, scalar_operand), select(select_kept, scalar_operand),
          combine(add, row_operand_number)},
         zero},
        {{combine(multiply, scalar_operand), causal(scalar_operand)}, zero},
        {{causal(scalar_operand), combine(subtract, matrix_operand)}, nan},
        {{combine(add, matrix_operand), select(select_masked, row_operand_number)}, nan},
        {{combine(divide, scalar_operand), change(tanh), combine(multiply, scalar_operand),
          select(select_kept, scalar_operand)},
         zero},
        {{change(tanh), causal(scalar_operand), change(exp)}},
        {{change(round_bf16), combine(multiply, matrix_operand)}},
        {{change(round_f16), select(select_kept, scalar_operand), combine(add, scalar_operand)}},
    };
    return all;
}

// Sums of f32 lose a little with every column where a vector is one element.
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
    const bool has_statistics = what.work.soft_max.has_value();
    if (has_statistics) desc.statistics = dense_desc(data_type::f32, {what.heads, what.rows, 1});
    const row_plan plan = make_row_plan(desc, target);
    SCOPED_TRACE(to_string(plan));
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
    for (const row_work& work : chains())
        for (const std::int64_t columns : {1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 1000})
            for (const std::int64_t offset : {0, 5, -3})
                check({2, 7, columns, work, offset}, GetParam(), ++seed, -1.25F);
}

TEST_P(run_rows_test, masks_with_minus_infinity) {
    for (const bool inf_as_zero : {true, false})
        for (const std::int64_t offset : {-10, -1, 0, 3})
            for (const std::int64_t columns : {std::int64_t{20}, held_row_columns + 5})
                check(
                    {2, 6, columns, {{causal(scalar_operand)}, row_soft_max{inf_as_zero}}, offset},
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
        desc.soft_max = {true};
        std::vector<float> result(scores.size());
        run_rows(make_row_plan(desc, GetParam()), {scores.data(), result.data(), {}});
        for (std::size_t i = 0; i < result.size(); ++i) {
            const bool is_first_row = i < static_cast<std::size_t>(columns);
            EXPECT_EQ(std::isnan(result[i]), is_first_row) << i;
            EXPECT_EQ(result[i] == 0.0F, !is_first_row) << i;
        }
    }
}

// A row of -infinity, one with +infinity and one with a NaN become zeros, a row of numbers stays.
TEST_P(run_rows_test, makes_zeros_of_nan) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    for (const std::int64_t columns : {std::int64_t{8}, held_row_columns + 5}) {
        const auto count = static_cast<std::size_t>(columns);
        std::vector<float> scores(4 * count, 1);
        std::fill_n(scores.begin(), count, -INFINITY);
        scores[count + 3] = INFINITY;
        scores[2 * count + 4] = nan;
        row_desc desc;
        desc.scores = desc.result = dense_desc(data_type::f32, {4, columns});
        desc.soft_max = {false, true};
        std::vector<float> result(scores.size(), nan);
        run_rows(make_row_plan(desc, GetParam()), {scores.data(), result.data(), {}});
        for (std::size_t i = 0; i < result.size(); ++i)
            ASSERT_FLOAT_EQ(result[i], i < 3 * count ? 0 : 1 / static_cast<float>(columns)) << i;
    }
}

TEST_P(run_rows_test, runs_on_the_threads_of_a_loop) {
    constexpr std::int64_t rows = 300, columns = 500; // enough to be shared out
    const std::vector<float> scores(rows * columns, 1);
    std::vector<float> result(scores.size());
    std::int64_t parts = 0;
    const parallel_loop loop{3, [&](std::int64_t count, const auto& body) {
                                 parts = count;
                                 for (std::int64_t i = count; i-- > 0;) body(i);
                             }};
    row_desc desc;
    desc.scores = desc.result = dense_desc(data_type::f32, {rows, columns});
    desc.soft_max = row_soft_max();
    run_rows(make_row_plan(desc, GetParam()), {scores.data(), result.data(), {}}, &loop);
    EXPECT_GE(parts, 3);
    for (const float value : result) ASSERT_FLOAT_EQ(value, 1.0F / columns);
}

TEST_P(run_rows_test, takes_rows_longer_than_its_buffers) {
    unsigned seed = 7;
    for (const row_work& work : chains())
        for (const std::int64_t columns :
             {held_row_columns, held_row_columns + 1, 3 * held_row_columns + 77})
            check({1, 2, columns, work, held_row_columns / 2}, GetParam(), ++seed, -1.25F);
}

TEST_P(run_rows_test, runs_many_rows_on_all_threads) {
    check({16, 64, 200, chains()[2], 0}, GetParam(), 99, -2.0F);
}

// What leaves as bytes is within half a unit of the value, saturated.
TEST_P(run_rows_test, quantizes) {
    const example what{1, 3, 100, {{combine(row_operator::multiply, scalar_operand)}}};
    data from = random_data(what, 5);
    from.scalar[0] = 100.0F;
    for (const data_type type : {data_type::i8, data_type::u8}) {
        row_desc desc = describe(what);
        desc.result = dense_desc(type, desc.scores.extents);
        desc.quantize = {4.0F, 7.0F};
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
        ASSERT_EQ(values[i], test::decode(halves[i], test::element::f16)) << i;
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

// One row of f32 without operands.
std::vector<float> through(const std::vector<float>& row, const row_work& work, isa target) {
    row_desc desc;
    desc.scores = desc.result =
        dense_desc(data_type::f32, {1, static_cast<std::int64_t>(row.size())});
    desc.steps = work.steps;
    desc.soft_max = work.soft_max;
    std::vector<float> result(row.size());
    run_rows(make_row_plan(desc, target), {row.data(), result.data(), {}});
    return result;
}

TEST_P(run_rows_test, exponentials_are_infinity_and_zero_and_nan_where_they_should) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> row = {0,    1,    -1,    88.7F, 89,   104,    104.5F, 178, 400,
                                    1000, 1e9F, 3e38F, inf,   -inf, -3e38F, -105,   NAN, -NAN};
    const auto got = through(row, {{change(row_operator::exp)}}, GetParam());
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
            for (const float value : through(row, {{}, row_soft_max{false}}, GetParam()))
                ASSERT_TRUE(std::isnan(value)) << std::hex << bits << " at " << at;
        }
}

INSTANTIATE_TEST_SUITE_P(every_target, run_rows_test,
                         testing::ValuesIn(supported_isas(native_cpu())),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

} // namespace
} // namespace maskwise
