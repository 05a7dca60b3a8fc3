// Tests the layouts and types that rows support, and the choices of their plans.

#include "plan/row_plan.hpp"

#include "base/error.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

enum operand_number : std::size_t { scalar_operand, row_operand_number, matrix_operand };

row_desc describe(const dims& shape) {
    row_desc desc;
    desc.scores = desc.result = dense_desc(data_type::f32, shape);
    desc.operands = {dense_desc(data_type::f32, {}),
                     dense_desc(data_type::f32, {shape[shape.rank() - 1]}), desc.scores};
    return desc;
}

// Tests the largest numbers of steps and operands, then one more of each.
TEST(row_plan, accepts_the_largest_numbers) {
    row_desc desc = describe({1, 2, 8});
    desc.steps.assign(max_row_actions, row_change{row_operator::tanh});
    desc.operands.assign(max_row_operands, dense_desc(data_type::f32, {}));
    EXPECT_NO_THROW(make_row_plan(desc, isa::scalar));
    row_desc more_steps = desc, more_operands = desc;
    more_steps.steps.push_back(desc.steps[0]);
    more_operands.operands.push_back(desc.operands[0]);
    EXPECT_THROW(make_row_plan(more_steps, isa::scalar), argument_error);
    EXPECT_THROW(make_row_plan(more_operands, isa::scalar), argument_error);
}

TEST(row_plan, refuses_a_result_of_another_shape_and_soft_max_of_a_scalar) {
    row_desc desc = describe({1, 2, 8});
    desc.result = dense_desc(data_type::f32, {1, 2, 9});
    EXPECT_THROW(make_row_plan(desc, isa::scalar), argument_error);
    desc = {};
    desc.scores = desc.result = dense_desc(data_type::f32, {});
    EXPECT_NO_THROW(make_row_plan(desc, isa::scalar));
    desc.soft_max = row_soft_max();
    EXPECT_THROW(make_row_plan(desc, isa::scalar), argument_error);
}

// Without SoftMax and without a causal mask, a row is the innermost loop after merging.
TEST(row_plan, merges_loops_into_the_longest_rows) {
    const auto rows_of = [](const dims& operand, const dims& strides_bytes) {
        row_desc desc;
        desc.scores = desc.result = dense_desc(data_type::f32, {3, 2, 8});
        desc.operands = {{data_type::f32, operand, strides_bytes}};
        desc.steps = {row_combine{row_operator::add, 0}};
        return to_string(make_row_plan(desc, isa::scalar));
    };
    EXPECT_EQ(rows_of({3, 2, 8}, {64, 32, 4}), "1 rows of 48: add");
    EXPECT_EQ(rows_of({}, {}), "1 rows of 48: add");
    EXPECT_EQ(rows_of({2, 8}, {32, 4}), "3 rows of 16: add");
    EXPECT_EQ(rows_of({2, 1}, {4, 4}), "6 rows of 8: add");
    EXPECT_EQ(rows_of({3, 1, 1}, {4, 4, 4}), "3 rows of 16: add");
}

TEST(row_plan, cuts_long_rows) {
    row_desc desc;
    desc.scores = desc.result = dense_desc(data_type::f32, {3, 4096});
    desc.operands = {dense_desc(data_type::f32, {})};
    desc.steps = {row_combine{row_operator::add, 0}};
    const row_plan plan = make_row_plan(desc, isa::scalar);
    EXPECT_EQ(plan.rows * plan.columns, 3 * 4096);
    desc.scores = desc.result = dense_desc(data_type::f32, {3, 4097});
    const row_plan longer = make_row_plan(desc, isa::scalar);
    EXPECT_EQ((longer.rows - 1) * longer.columns + longer.last_columns, 3 * 4097);
    desc.soft_max = row_soft_max();
    EXPECT_EQ(make_row_plan(desc, isa::scalar).columns, 4097);
}

TEST(row_plan, prints_one_line) {
    row_desc desc = describe({3, 2, 8});
    desc.steps = {row_combine{row_operator::divide, scalar_operand}, causal_select(scalar_operand),
                  row_change{row_operator::tanh}};
    desc.soft_max = row_soft_max();
    EXPECT_EQ(to_string(make_row_plan(desc, isa::scalar)),
              "6 rows of 8: divide select_causal tanh soft_max");
    desc.statistics = dense_desc(data_type::f32, {3, 2, 1});
    for (const data_type type : {data_type::i8, data_type::u8}) {
        desc.result = dense_desc(type, {3, 2, 8});
        EXPECT_EQ(to_string(make_row_plan(desc, isa::scalar)),
                  "6 rows of 8: divide select_causal tanh soft_max statistics quantize");
    }
}

// A client may pass these sizes; no machine has memory for them.
TEST(row_plan, refuses_sizes_beyond_64_bits) {
    constexpr std::int64_t huge = std::int64_t{1} << 62;
    const auto make = [](const dims& shape, const dims& strides_bytes) {
        row_desc desc;
        desc.scores = desc.result = {data_type::f32, shape, strides_bytes};
        return make_row_plan(desc, isa::scalar, 0);
    };
    EXPECT_THROW(make({3, 8}, {huge, 4}), shape_error);
    EXPECT_THROW(make({huge, huge, 1}, {4, 4, 4}), shape_error);
    EXPECT_THROW(make({1, huge}, {4, 4}), shape_error);
    row_desc scores_overflow = describe({3, 8});
    scores_overflow.scores.strides_bytes[0] = huge;
    EXPECT_THROW(make_row_plan(scores_overflow, isa::scalar), shape_error);
    EXPECT_FALSE(make({0, huge}, {4, 4}).streams); // no row is stored
}

// 6 rows of 8 elements move 384 bytes: 4 read and 4 written per element.
TEST(row_plan, streams_from_the_threshold_on) {
    const row_desc desc = describe({3, 2, 8});
    EXPECT_TRUE(make_row_plan(desc, isa::scalar, 384).streams);
    EXPECT_FALSE(make_row_plan(desc, isa::scalar, 390).streams);
    EXPECT_FALSE(make_row_plan(describe({0, 2, 8}), isa::scalar, 0).streams);
}

TEST(row_plan, quantizes_by_a_factor) {
    row_desc desc = describe({1, 2, 8});
    EXPECT_EQ(make_row_plan(desc, isa::scalar).inverse_scale, 1.0F);
    desc.quantize = {4.0F, 3.0F};
    EXPECT_EQ(make_row_plan(desc, isa::scalar).inverse_scale, 0.25F);
    EXPECT_EQ(make_row_plan(desc, isa::scalar).zero_point, 3.0F);
}

TEST(row_plan, refuses_unsupported_rows) {
    const auto refuses = [](const auto& change) {
        row_desc desc = describe({1, 2, 8});
        change(desc);
        return !test::refusal<argument_error>([&] { make_row_plan(desc, isa::scalar); }).empty();
    };
    EXPECT_FALSE(refuses([](row_desc&) {}));
    EXPECT_TRUE(refuses([](auto& d) { d.operands[row_operand_number].strides_bytes[0] = 8; }));
    EXPECT_TRUE(refuses([](auto& d) { d.scores.strides_bytes[2] = 0; }));
    EXPECT_TRUE(refuses([](auto& d) { d.steps = {causal_select(row_operand_number)}; }));
    EXPECT_TRUE(refuses([](auto& d) {
        d.steps = {row_select{row_operator::select_kept, matrix_operand, scalar_operand}};
    }));
    EXPECT_TRUE(refuses([](auto& d) { d.scores.type = data_type::i32; }));
    EXPECT_TRUE(refuses([](auto& d) { d.operands[scalar_operand].type = data_type::i8; }));
    EXPECT_TRUE(refuses([](auto& d) { d.operands[matrix_operand].extents = dims{3, 2, 8}; }));
    EXPECT_TRUE(refuses([](auto& d) { d.result.strides_bytes[1] = 4; }));
    for (const auto& statistics :
         {dense_desc(data_type::bf16, {1, 2, 1}), dense_desc(data_type::f32, {1, 2, 8}),
          dense_desc(data_type::f32, {1, 1, 1})})
        EXPECT_TRUE(refuses([&](auto& d) { d.statistics = statistics; }));
}

} // namespace
} // namespace maskwise
