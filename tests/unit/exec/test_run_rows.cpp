// Rows through random chains, every instruction set, against the same chain in double precision.

#include "exec/run_rows.hpp"
#include "support/guarded_buffer.hpp"

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
    }
    return 0;
}

void soft_max(std::vector<double>& row, bool inf_as_zero) {
    double maximum = -infinity, sum = 0;
    for (const double value : row) maximum = std::max(maximum, value);
    if (inf_as_zero && maximum == -infinity) {
        std::fill(row.begin(), row.end(), 0.0);
        return;
    }
    for (double& value : row) sum += value = std::exp(value - maximum);
    for (double& value : row) value /= sum;
}

std::vector<double> expected_row(const example& what, const data& from, std::int64_t number) {
    const auto columns = static_cast<std::size_t>(what.columns);
    const auto first = static_cast<std::size_t>(number) * columns;
    const std::int64_t in_matrix = number % what.rows;
    std::vector<double> row(from.scores.begin() + static_cast<std::ptrdiff_t>(first),
                            from.scores.begin() + static_cast<std::ptrdiff_t>(first + columns));
    for (const row_step& step : what.steps) {
        if (step.kind == row_step_kind::soft_max) {
            soft_max(row, step.inf_as_zero);
            continue;
        }
        for (std::size_t c = 0; c < columns; ++c) {
            const double other = operand_at(from, step.operand, first + c, c);
            const auto byte = from.cond[static_cast<std::size_t>(in_matrix) * columns + c];
            const bool is_true = byte != std::byte{0};
            const bool is_kept = in_matrix + what.causal_offset >= static_cast<std::int64_t>(c);
            switch (step.kind) {
            case row_step_kind::combine:
                row[c] = combined(row[c], other, step.op);
                break;
            case row_step_kind::select_kept:
                row[c] = is_true ? row[c] : other;
                break;
            case row_step_kind::select_masked:
                row[c] = is_true ? other : row[c];
                break;
            case row_step_kind::select_causal:
                row[c] = is_kept ? row[c] : other;
                break;
            case row_step_kind::soft_max:
                break;
            }
        }
    }
    return row;
}

row_step combine(row_operator op, int operand) {
    return {row_step_kind::combine, op, operand, -1, false};
}
row_step select(row_step_kind kind, int operand) {
    return {kind, row_operator::add, operand, kind == row_step_kind::select_causal ? -1 : 3, false};
}
row_step soft_max_step(bool inf_as_zero) {
    return {row_step_kind::soft_max, row_operator::add, -1, -1, inf_as_zero};
}

const std::vector<std::vector<row_step>>& chains() {
    static const std::vector<std::vector<row_step>> all = {
        {select(row_step_kind::select_kept, scalar_operand)},
        {select(row_step_kind::select_masked, matrix_operand)},
        {combine(row_operator::divide, scalar_operand),
         select(row_step_kind::select_kept, scalar_operand),
         combine(row_operator::add, row_operand_number), soft_max_step(true)},
        {combine(row_operator::multiply, scalar_operand),
         select(row_step_kind::select_causal, scalar_operand), soft_max_step(true)},
        {select(row_step_kind::select_causal, scalar_operand),
         combine(row_operator::subtract, matrix_operand), soft_max_step(false)},
        {combine(row_operator::add, matrix_operand),
         select(row_step_kind::select_masked, row_operand_number), soft_max_step(false)},
    };
    return all;
}

// Rows end at a page that may not be read or written.
void check(const example& what, isa target, unsigned seed, float scalar) {
    data from = random_data(what, seed);
    from.scalar[0] = scalar;
    const row_plan plan = make_row_plan(describe(what), target);
    const std::size_t bytes = from.scores.size() * sizeof(float);
    test::guarded_buffer memory(bytes, test::guarded_buffer::edge::back);
    std::memcpy(memory.data(), from.scores.data(), bytes);
    test::guarded_buffer cond(from.cond.size(), test::guarded_buffer::edge::back);
    std::memcpy(cond.data(), from.cond.data(), from.cond.size());
    const void* operands[] = {from.scalar.data(), from.row.data(), from.matrix.data(), cond.data()};
    run_rows(plan, {memory.data(), memory.data(), std::span(operands, plan.operands.size()),
                    what.causal_offset});

    const auto* actual = reinterpret_cast<const float*>(memory.data());
    for (std::int64_t row = 0; row < what.heads * what.rows; ++row) {
        const auto wanted = expected_row(what, from, row);
        for (std::int64_t c = 0; c < what.columns; ++c) {
            const double want = wanted[static_cast<std::size_t>(c)];
            const double got = actual[row * what.columns + c];
            if (std::isnan(want)) {
                ASSERT_TRUE(std::isnan(got)) << "row " << row << " column " << c;
                continue;
            }
            ASSERT_NEAR(got, want, 2e-6 * (1 + std::abs(want))) << "row " << row << " column " << c;
        }
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
    constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
    for (const bool inf_as_zero : {true, false})
        for (const std::int64_t offset : {-10, -1, 0, 3})
            check(
                {2,
                 6,
                 20,
                 {select(row_step_kind::select_causal, scalar_operand), soft_max_step(inf_as_zero)},
                 offset},
                GetParam(), 3, minus_infinity);
}

TEST_P(run_rows_test, runs_many_rows_on_all_threads) {
    check({16, 64, 200, chains()[2], 0}, GetParam(), 99, -2.0F);
}

INSTANTIATE_TEST_SUITE_P(every_target, run_rows_test,
                         testing::ValuesIn(supported_isas(native_cpu())),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

TEST(row_plan, refuses_what_rows_cannot_be) {
    example what{1, 2, 8, {soft_max_step(true)}, 0};
    row_desc strided = describe(what);
    strided.operands[row_operand_number].strides_bytes[0] = 8;
    EXPECT_THROW(make_row_plan(strided, isa::scalar), std::exception);
    row_desc wide = describe({1, 1, max_row_columns + 1, {soft_max_step(true)}, 0});
    EXPECT_THROW(make_row_plan(wide, isa::scalar), std::exception);
    row_desc typed = describe(what);
    typed.scores.type = data_type::i32;
    EXPECT_THROW(make_row_plan(typed, isa::scalar), std::exception);
    row_desc larger = describe(what);
    larger.operands[matrix_operand].extents = dims{3, 2, 8};
    EXPECT_THROW(make_row_plan(larger, isa::scalar), std::exception);
}

} // namespace
} // namespace maskwise
