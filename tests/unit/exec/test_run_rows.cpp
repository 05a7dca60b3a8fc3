// Compares random rows with a reference in double precision, for each chain of chains() and each
// instruction set of this machine.

#include "exec/run_rows.hpp"
#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"
#include "support/numbers.hpp"
#include "support/operations.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

namespace maskwise {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct row_work {
    std::vector<row_step> steps;
    std::optional<row_soft_max> soft_max = std::nullopt;
};

// One chain and the size of its scores. The chain's operands are a scalar, a row, a matrix
// and, for a Select, a cond.
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

data random_data(const example& sample, unsigned seed) {
    test::generator random(seed);
    std::normal_distribution<float> normal(0.0F, 3.0F);
    const auto fill = [&](std::int64_t size) {
        std::vector<float> values(static_cast<std::size_t>(size));
        for (float& value : values) value = normal(random);
        return values;
    };
    const std::int64_t count = sample.heads * sample.rows * sample.columns;
    data result{fill(count), {1.75F}, fill(sample.columns), fill(count), {}};
    result.cond.resize(static_cast<std::size_t>(sample.rows * sample.columns));
    for (auto& byte : result.cond) byte = std::byte{static_cast<std::uint8_t>(random() % 3)};
    return result;
}

row_desc dense_rows(const dims& shape, const row_work& work) {
    row_desc desc;
    desc.scores = desc.result = dense_desc(data_type::f32, shape);
    desc.steps = work.steps;
    desc.soft_max = work.soft_max;
    return desc;
}

// Runs dense rows without operands.
std::vector<float> run_dense(const std::vector<float>& rows, const dims& shape,
                             const row_work& work, isa target,
                             const parallel_loop* loop = nullptr) {
    std::vector<float> result(rows.size(), NAN);
    run_rows(make_row_plan(dense_rows(shape, work), target), {rows.data(), result.data(), {}},
             loop);
    return result;
}

row_desc describe(const example& sample) {
    const dims shape{sample.heads, sample.rows, sample.columns};
    row_desc desc = dense_rows(shape, sample.work);
    desc.operands = {dense_desc(data_type::f32, {}), dense_desc(data_type::f32, {sample.columns}),
                     desc.scores};
    const auto is_select = [](const auto& step) {
        return std::holds_alternative<row_select>(step) && !is_causal(step);
    };
    if (std::ranges::any_of(desc.steps, is_select))
        desc.operands.push_back(dense_desc(data_type::boolean, {sample.rows, sample.columns}));
    return desc;
}

double operand_at(const data& from, std::size_t operand, std::size_t element, std::size_t column) {
    if (operand == scalar_operand) return from.scalar[0];
    return operand == row_operand_number ? from.row[column] : from.matrix[element];
}

constexpr float slope = 0.25F;

// The reference operation for each operator of operators.inc.
const std::map<row_operator, test::operation>& arithmetic() {
    static const std::map<row_operator, test::operation> operations{
#define MASKWISE_ROW_UNARY(name, ...) {row_operator::name, test::operation::name},
#define MASKWISE_ROW_BINARY(name, ...) MASKWISE_ROW_UNARY(name, )
#include "kernel/rows/operators.inc"
    };
    return operations;
}

double combined(double a, double b, row_operator op) {
    using enum row_operator;
    if (op == round_bf16) return test::round_to(a, test::element::bf16);
    if (op == round_f16) return test::round_to(a, test::element::f16);
    if (op == subtract_from) return b - a;
    if (op == divide_into) return b / a;
    return test::compute(arithmetic().at(op), a, b, slope);
}

struct wanted_row {
    std::vector<double> values;
    double statistics = 0;
};

// Applies one step to one element.
struct stepped {
    const data& from;
    std::size_t element, column; // index in the scores, index in the row
    bool cond, is_unmasked;
    double value;

    double side(std::size_t operand) const { return operand_at(from, operand, element, column); }
    double operator()(const row_change& step) const { return combined(value, 0, step.op); }
    double operator()(const row_combine& step) const {
        return combined(value, side(step.side), step.op);
    }
    double operator()(const row_select& step) const {
        const bool keeps = step.cond ? cond == (step.op == row_operator::select_kept) : is_unmasked;
        return keeps ? value : side(step.side);
    }
};

wanted_row expected_row(const example& sample, const data& from, std::int64_t number) {
    const auto columns = static_cast<std::size_t>(sample.columns);
    const auto first = static_cast<std::size_t>(number) * columns;
    const std::int64_t in_matrix = number % sample.rows;
    wanted_row wanted;
    auto& row = wanted.values;
    row.assign(from.scores.begin() + static_cast<std::ptrdiff_t>(first),
               from.scores.begin() + static_cast<std::ptrdiff_t>(first + columns));
    for (const row_step& step : sample.work.steps)
        for (std::size_t c = 0; c < columns; ++c) {
            const auto byte = from.cond[static_cast<std::size_t>(in_matrix) * columns + c];
            const bool is_unmasked =
                in_matrix + sample.causal_offset >= static_cast<std::int64_t>(c);
            row[c] = std::visit(
                stepped{from, first + c, c, byte != std::byte{0}, is_unmasked, row[c]}, step);
        }
    if (!sample.work.soft_max) return wanted;
    wanted.statistics =
        test::soft_max(row.data(), row.size(), 1, sample.work.soft_max->inf_as_zero);
    return wanted;
}

row_step change(row_operator op) {
    return row_change{op, slope};
}
row_step combine(row_operator op, std::size_t side) {
    return row_combine{op, side};
}
row_step select(row_operator op, std::size_t side) {
    return row_select{op, cond_operand, side};
}
row_step causal(std::size_t side) {
    return causal_select(side);
}

const std::vector<row_work>& chains() {
    using enum row_operator;
    constexpr row_soft_max zero{true}, nan{false}; // named after the result of a row of -infinity
    static const std::vector<row_work> list = {
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
        {{change(tanh), causal(scalar_operand), change(leaky_relu)}},
        {{change(round_bf16), combine(multiply, matrix_operand)}},
        {{change(round_f16), select(select_kept, scalar_operand), combine(add, scalar_operand)}},
        {{combine(subtract_from, matrix_operand), combine(divide_into, row_operand_number)}},
        {{change(leaky_relu), select(select_kept, row_operand_number), change(round_bf16)}, zero},
    };
    return list;
}

// Long rows have a larger tolerance: without vectors, f32 sums lose precision with every column.
void expect_near(const example& sample, double got, double want, std::int64_t row,
                 std::int64_t column) {
    const double allowed = sample.columns > 4000 ? 1e-5 : 2e-6;
    if (std::isnan(want))
        ASSERT_TRUE(std::isnan(got)) << "row " << row << " column " << column;
    else
        ASSERT_NEAR(got, want, allowed * (1 + std::abs(want)))
            << "row " << row << " column " << column;
}

// Compares one chain with the reference. Scores and cond end at guard pages.
void check(const example& sample, isa target, unsigned seed, float scalar) {
    data from = random_data(sample, seed);
    from.scalar[0] = scalar;
    row_desc desc = describe(sample);
    const bool has_statistics = sample.work.soft_max.has_value();
    if (has_statistics)
        desc.statistics = dense_desc(data_type::f32, {sample.heads, sample.rows, 1});
    const row_plan plan = make_row_plan(desc, target);
    SCOPED_TRACE(to_string(plan));
    const std::size_t bytes = from.scores.size() * sizeof(float);
    test::guarded_buffer memory(bytes, test::guarded_buffer::edge::back);
    std::memcpy(memory.data(), from.scores.data(), bytes);
    test::guarded_buffer cond(from.cond.size(), test::guarded_buffer::edge::back);
    std::memcpy(cond.data(), from.cond.data(), from.cond.size());
    const void* operands[] = {from.scalar.data(), from.row.data(), from.matrix.data(), cond.data()};
    std::vector<float> statistics(static_cast<std::size_t>(sample.heads * sample.rows));
    run_rows(plan, {memory.data(), memory.data(), std::span(operands, plan.operands.size()),
                    statistics.data(), sample.causal_offset});

    const auto* actual = reinterpret_cast<const float*>(memory.data());
    for (std::int64_t row = 0; row < sample.heads * sample.rows; ++row) {
        const wanted_row wanted = expected_row(sample, from, row);
        for (std::int64_t c = 0; c < sample.columns; ++c)
            expect_near(sample, actual[row * sample.columns + c],
                        wanted.values[static_cast<std::size_t>(c)], row, c);
        if (has_statistics)
            expect_near(sample, statistics[static_cast<std::size_t>(row)], wanted.statistics, row,
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

TEST_P(run_rows_test, computes_every_operator_of_the_list) {
    unsigned seed = 500;
    for (const auto& [op, operation] : arithmetic())
        for (const std::int64_t columns : {1, 7, 40, 200}) {
            const row_step step =
                test::input_count(operation) == 1 ? change(op) : combine(op, matrix_operand);
            check({1, 3, columns, {{step}}}, GetParam(), ++seed, 1);
        }
}

TEST_P(run_rows_test, masks_with_minus_infinity) {
    for (const bool inf_as_zero : {true, false})
        for (const std::int64_t offset : {-10, -1, 0, 3})
            for (const std::int64_t columns : {std::int64_t{20}, held_row_columns + 5})
                check(
                    {2, 6, columns, {{causal(scalar_operand)}, row_soft_max{inf_as_zero}}, offset},
                    GetParam(), 3, static_cast<float>(-infinity));
}

// The first row has only a NaN and -infinity. The maximum ignores the NaN, but the row must become
// NaN.
TEST_P(run_rows_test, keeps_a_nan_among_minus_infinities) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(), hidden = -INFINITY;
    for (const std::int64_t columns : {std::int64_t{8}, held_row_columns + 5}) {
        std::vector<float> scores(static_cast<std::size_t>(2 * columns), hidden);
        scores[3] = nan;
        const auto result = run_dense(scores, {2, columns}, {{}, row_soft_max{true}}, GetParam());
        for (std::size_t i = 0; i < result.size(); ++i) {
            const bool is_first_row = i < static_cast<std::size_t>(columns);
            EXPECT_EQ(std::isnan(result[i]), is_first_row) << i;
            EXPECT_EQ(result[i] == 0.0F, !is_first_row) << i;
        }
    }
}

// A row becomes zeros if it has only -infinity, or any +infinity or NaN.
TEST_P(run_rows_test, replaces_nan_by_zero) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    for (const std::int64_t columns : {std::int64_t{8}, held_row_columns + 5}) {
        const auto count = static_cast<std::size_t>(columns);
        std::vector<float> scores(4 * count, 1);
        std::fill_n(scores.begin(), count, -INFINITY);
        scores[count + 3] = INFINITY;
        scores[2 * count + 4] = nan;
        const row_work zeros{{}, row_soft_max{false, true}};
        const auto result = run_dense(scores, {4, columns}, zeros, GetParam());
        for (std::size_t i = 0; i < result.size(); ++i)
            ASSERT_FLOAT_EQ(result[i], i < 3 * count ? 0 : 1 / static_cast<float>(columns)) << i;
    }
}

TEST_P(run_rows_test, runs_on_the_threads_of_a_loop) {
    constexpr std::int64_t rows = 300, columns = 500; // enough for several threads
    const std::vector<float> scores(rows * columns, 1);
    std::int64_t parts = 0;
    const parallel_loop loop{3, [&](std::int64_t count, const auto& body) {
                                 parts = count;
                                 for (std::int64_t i = count; i-- > 0;) body(i);
                             }};
    const auto result = run_dense(scores, {rows, columns}, {{}, row_soft_max()}, GetParam(), &loop);
    EXPECT_GE(parts, 3);
    for (const float value : result) ASSERT_FLOAT_EQ(value, 1.0F / columns);
}

TEST_P(run_rows_test, computes_rows_longer_than_its_buffers) {
    unsigned seed = 7;
    for (const row_work& work : chains())
        for (const std::int64_t columns :
             {held_row_columns, held_row_columns + 1, 3 * held_row_columns + 77})
            check({1, 2, columns, work, held_row_columns / 2}, GetParam(), ++seed, -1.25F);
}

TEST_P(run_rows_test, runs_many_rows_on_all_threads) {
    check({16, 64, 200, chains()[2], 0}, GetParam(), 99, -2.0F);
}

// An 8-bit result is within half a unit of the saturated exact value.
TEST_P(run_rows_test, quantizes_to_8_bits) {
    const example sample{1, 3, 100, {{combine(row_operator::multiply, scalar_operand)}}};
    data from = random_data(sample, 5);
    from.scalar[0] = 100.0F;
    for (const data_type type : {data_type::i8, data_type::u8}) {
        row_desc desc = describe(sample);
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

// Long rows are cut into pieces, and the last piece may be shorter. The test runs in place, so an
// element that is computed twice gets a wrong value.
TEST_P(run_rows_test, cuts_dense_operands_into_pieces) {
    for (const std::int64_t count : {4096, 4097, 8192, 100003}) {
        row_desc desc = dense_rows(
            {count}, {{combine(row_operator::add, 0), combine(row_operator::multiply, 1)}});
        desc.operands = {desc.scores, dense_desc(data_type::f32, {})};
        std::vector<float> values(static_cast<std::size_t>(count)), side(values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i % 977), side[i] = static_cast<float>(i % 31);
        std::vector<float> wanted(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) wanted[i] = (values[i] + side[i]) * 2;
        constexpr float two = 2;
        const void* operands[] = {side.data(), &two};
        run_rows(make_row_plan(desc, GetParam()), {values.data(), values.data(), operands});
        EXPECT_EQ(values, wanted) << count;
    }
}

// The kernel's rows run along the first dimension, because only that dimension is contiguous.
TEST_P(run_rows_test, walks_operands_whose_first_dimension_is_innermost) {
    const dims shape{3, 5, 7};
    row_desc desc;
    desc.scores = desc.result = {data_type::f32, shape, {4, 12 * 7, 12}};
    desc.operands = {{data_type::f32, {3, 1, 1}, {4, 4, 4}}, {data_type::f32, {7}, {4}}};
    desc.steps = {combine(row_operator::add, 0), combine(row_operator::multiply, 1)};
    std::vector<float> scores(105), result(105), first{1, 2, 3}, last{1, 10, 100, 2, 20, 200, 3};
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i);
    const void* operands[] = {first.data(), last.data()};
    run_rows(make_row_plan(desc, GetParam()), {scores.data(), result.data(), operands});
    for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 5; ++b)
            for (std::size_t c = 0; c < 7; ++c) {
                const std::size_t index = a + b * 21 + c * 3;
                ASSERT_EQ(result[index], (scores[index] + first[a]) * last[c]) << a << b << c;
            }
}

// One of the NaNs has all bits set, as uninitialized memory often has.
TEST_P(run_rows_test, a_nan_makes_its_whole_row_nan) {
    for (const std::uint32_t bits : {0x7FC00000U, 0x7FC00001U, 0x7F800001U, 0xFFFFFFFFU})
        for (const std::size_t index : {std::size_t{0}, std::size_t{20}, std::size_t{32}}) {
            std::vector<float> row(33, 0.5F);
            std::memcpy(&row[index], &bits, sizeof bits);
            for (const float value : run_dense(row, {33}, {{}, row_soft_max{false}}, GetParam()))
                ASSERT_TRUE(std::isnan(value)) << std::hex << bits << " at " << index;
        }
}

INSTANTIATE_TEST_SUITE_P(every_target, run_rows_test,
                         testing::ValuesIn(supported_isas(native_cpu())),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

} // namespace
} // namespace maskwise
