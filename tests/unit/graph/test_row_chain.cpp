// Which partitions hold a chain of rows, and which only come near one.

#include "graph/chain_finder.hpp"
#include "graph/find_row_chain.hpp"
#include "unit/graph/chain_graphs.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace maskwise::graph {
namespace {

std::vector<row_operator> operators(const row_chain& chain) {
    std::vector<row_operator> list;
    for (const row_step& step : chain.steps)
        std::visit(
            [&list](const auto& kind) {
                if constexpr (requires { kind.op; }) list.push_back(kind.op);
            },
            step);
    return list;
}

TEST(row_chain, reaches_from_the_scale_to_the_soft_max) {
    std::string reason;
    const auto chain = attention().find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->scores, scores);
    EXPECT_EQ(chain->result, weights);
    EXPECT_EQ(operators(*chain),
              (std::vector{row_operator::divide, row_operator::select_kept, row_operator::add}));
    EXPECT_TRUE(chain->soft_max);
    EXPECT_EQ(chain->op_ids.size(), 4U);
}

TEST(row_chain, knows_which_source_the_scores_are) {
    partition made = attention();
    std::swap(made.at(3).inputs[1], made.at(3).inputs[2]);
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    const auto& select = std::get<row_select>(chain->steps[1]);
    EXPECT_EQ(select.op, row_operator::select_masked);
    EXPECT_EQ(chain->operands[select.cond].id, mask);
    EXPECT_EQ(chain->operands[select.side].id, fill);
}

TEST(row_chain, replaces_a_mask_of_indices) {
    std::string reason;
    const auto chain = causal().find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->operands[std::get<row_causal_select>(chain->steps[1]).side].id, fill);
    ASSERT_EQ(chain->boundary.size(), 1U);
    EXPECT_EQ(chain->boundary[0].tensor.id, term);
    EXPECT_FALSE(chain->boundary[0].is_subtracted);
    EXPECT_EQ(chain->op_ids.size(), 8U);
}

TEST(row_chain, keeps_inf_as_zero) {
    partition made = attention();
    made.at(5).mode = "inf_as_zero";
    std::string reason;
    EXPECT_TRUE(made.find(reason)->soft_max->inf_as_zero);
    made.at(5).mode = "none";
    EXPECT_FALSE(made.find(reason)->soft_max->inf_as_zero);
}

TEST(row_chain, may_have_a_soft_max_without_a_select) {
    partition made = attention();
    made.at(3).kind = op_kind::other;
    made.at(5).mode = "nan_as_zero";
    const std::vector<std::size_t> outputs = {weights};
    const row_chain chain = find_chain(made.at(5), partition_rules(made.ops, outputs));
    EXPECT_EQ(operators(chain), std::vector{row_operator::add});
    EXPECT_EQ(chain.scores, selected);
    EXPECT_EQ(chain.result, weights);
    EXPECT_TRUE(chain.soft_max->nan_as_zero);
    EXPECT_FALSE(chain.soft_max->inf_as_zero);
    made.at(5).axis = 1;
    EXPECT_THROW(find_chain(made.at(5), partition_rules(made.ops, outputs)), no_chain);
}

TEST(row_chain, ends_where_a_value_is_used_elsewhere) {
    partition made = attention();
    made.outputs.push_back(selected);
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->result, selected);
}

TEST(row_chain, begins_where_a_value_is_used_elsewhere) {
    partition made = attention();
    made.ops.push_back(make(9, op_kind::other, {tensor(scores)}, 30));
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->scores, scaled);
}

TEST(row_chain, takes_an_operator_that_commutes_on_either_side) {
    partition made = attention();
    std::swap(made.at(4).inputs[0], made.at(4).inputs[1]);
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->result, weights);
    EXPECT_EQ(chain->operands[std::get<row_combine>(chain->steps[2]).side].id, bias);
}

TEST(row_chain, leaves_an_operator_that_reads_its_row_on_the_wrong_side) {
    partition made = attention();
    made.at(4).kind = op_kind::subtract;
    std::swap(made.at(4).inputs[0], made.at(4).inputs[1]);
    std::string reason;
    EXPECT_EQ(made.find(reason)->result, selected);
}

TEST(row_chain, leaves_a_soft_max_along_another_axis) {
    partition made = attention();
    made.at(5).axis = 1;
    std::string reason;
    EXPECT_EQ(made.find(reason)->result, added);
}

TEST(row_chain, makes_statistics_that_somebody_uses) {
    partition made = attention();
    made.at(5).outputs.push_back(tensor(statistics));
    std::string reason;
    EXPECT_FALSE(made.find(reason)->statistics);
    made.outputs.push_back(statistics);
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain && chain->statistics);
    EXPECT_EQ(chain->statistics->id, statistics);
    EXPECT_EQ(chain->result, weights);
}

// Divide, Tanh, Multiply: the scores pass three operators before the Select.
TEST(row_chain, reaches_over_a_soft_cap) {
    partition made = attention();
    made.at(3).inputs[1] = tensor(capped);
    made.ops.insert(made.ops.begin() + 2,
                    {make(20, op_kind::tanh, {tensor(scaled)}, bent),
                     make(21, op_kind::multiply, {tensor(factor, {1}), tensor(bent)}, capped)});
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->scores, scores);
    EXPECT_EQ(operators(*chain),
              (std::vector{row_operator::divide, row_operator::tanh, row_operator::multiply,
                           row_operator::select_kept, row_operator::add}));
}

// What the int8 forms have behind SoftMax: operators 7 and 8.
partition quantized() {
    partition made = attention();
    made.at(6).inputs[0] = tensor(bytes);
    op quantize = make(8, op_kind::quantize, {tensor(cast)}, bytes);
    quantize.constants = {0.5F, 3.0F};
    made.ops.insert(made.ops.end() - 1,
                    {make(7, op_kind::type_cast, {tensor(weights)}, cast), quantize});
    return made;
}

TEST(row_chain, rounds_to_the_types_between_operators) {
    partition made = attention();
    made.at(2).outputs[0].type = data_type::bf16;
    made.at(4).outputs[0].type = data_type::f16;
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(operators(*chain),
              (std::vector{row_operator::divide, row_operator::round_bf16,
                           row_operator::select_kept, row_operator::add, row_operator::round_f16}));
}

TEST(row_chain, ends_with_a_quantize) {
    std::string reason;
    const auto chain = quantized().find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->result, bytes);
    ASSERT_TRUE(chain->quantize);
    EXPECT_EQ(chain->quantize->scale, 0.5F);
    EXPECT_EQ(chain->quantize->zero_point, 3.0F);
}

struct shorter_chain {
    const char* name;
    std::function<void(partition&)> change;
    std::size_t result; // where the chain ends instead
};

class near_misses_below : public testing::TestWithParam<shorter_chain> {};

TEST_P(near_misses_below, end_the_chain) {
    partition made = quantized();
    GetParam().change(made);
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->result, GetParam().result);
    EXPECT_FALSE(chain->quantize && chain->result != bytes);
}

INSTANTIATE_TEST_SUITE_P(
    of_what_follows_the_select, near_misses_below,
    testing::Values(
        shorter_chain{"scale_for_each_channel", [](partition& p) { p.at(8).constants.reset(); },
                      cast},
        shorter_chain{"cast_leaves", [](partition& p) { p.outputs.push_back(cast); }, cast},
        shorter_chain{
            "cast_used_twice",
            [](partition& p) { p.ops.push_back(make(9, op_kind::other, {tensor(cast)}, 30)); },
            cast},
        shorter_chain{"arithmetic_behind_soft_max",
                      [](partition& p) {
                          p.at(7).kind = op_kind::multiply;
                          p.at(7).inputs.push_back(tensor(factor, {1}));
                      },
                      weights},
        shorter_chain{"second_soft_max",
                      [](partition& p) {
                          p.at(7).kind = op_kind::soft_max;
                          p.at(7).axis = -1;
                      },
                      weights},
        shorter_chain{"soft_max_along_another_axis", [](partition& p) { p.at(5).axis = 2; }, added},
        shorter_chain{"soft_max_without_an_axis", [](partition& p) { p.at(5).axis.reset(); },
                      added},
        shorter_chain{"operand_made_inside",
                      [](partition& p) {
                          p.ops.insert(p.ops.begin(), make(9, op_kind::other, {tensor(30)}, bias));
                      },
                      selected},
        shorter_chain{"added_to_itself", [](partition& p) { p.at(4).inputs[1] = tensor(selected); },
                      selected},
        shorter_chain{"add_without_broadcast",
                      [](partition& p) { p.at(4).auto_broadcast = "none"; }, selected},
        shorter_chain{"unknown_operator", [](partition& p) { p.at(4).kind = op_kind::other; },
                      selected},
        shorter_chain{"divides_by_the_row",
                      [](partition& p) {
                          p.at(4).kind = op_kind::divide;
                          std::swap(p.at(4).inputs[0], p.at(4).inputs[1]);
                      },
                      selected}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

// How many operators of that kind behind a Select are in its chain.
std::size_t taken_behind_select(op_kind kind, bool has_operand, data_type type = data_type::f32) {
    partition made{{make(1, op_kind::other, {tensor(query), tensor(key)}, scores),
                    make(3, op_kind::select, {tensor(mask), tensor(scores), tensor(fill)}, 100)},
                   {112}};
    for (std::size_t value = 100; value < 112; ++value) {
        op next = make(value, kind, {tensor(value)}, value + 1);
        next.outputs[0].type = type;
        if (has_operand) next.inputs.push_back(tensor(value + 100));
        made.ops.push_back(next);
    }
    std::string reason;
    return made.find(reason)->op_ids.size() - 1;
}

// Eight operands are read at most, two of them by the Select; twelve steps are made, two of them
// for what rounds behind the last one and for a SoftMax.
TEST(row_chain, ends_where_there_is_no_more_room) {
    EXPECT_EQ(taken_behind_select(op_kind::add, true), max_row_operands - 2);
    EXPECT_EQ(taken_behind_select(op_kind::tanh, false), max_row_actions - 3);
    EXPECT_EQ(taken_behind_select(op_kind::type_cast, false, data_type::bf16), max_row_actions - 3);
}

TEST(row_chain, takes_one_number_for_the_boundary) {
    partition made = causal();
    made.at(13).inputs[1].extents = {1};
    made.at(10).axis = 2;
    std::string reason;
    EXPECT_TRUE(made.find(reason)) << reason;
    made.at(13).inputs[1].extents = {3};
    EXPECT_FALSE(made.find(reason));
}

struct later_start {
    const char* name;
    std::function<void(partition&)> change;
};

class near_misses_above : public testing::TestWithParam<later_start> {};

TEST_P(near_misses_above, begin_behind_the_scale) {
    partition made = attention();
    GetParam().change(made);
    std::string reason;
    const auto chain = made.find(reason);
    ASSERT_TRUE(chain) << reason;
    EXPECT_EQ(chain->scores, scaled);
}

INSTANTIATE_TEST_SUITE_P(
    of_what_precedes_the_select, near_misses_above,
    testing::Values(
        later_start{"scale_without_broadcast",
                    [](partition& p) { p.at(2).auto_broadcast = "none"; }},
        later_start{"scale_made_inside", [](partition& p) { p.at(2).inputs[1] = tensor(scores); }},
        later_start{"unknown_operator", [](partition& p) { p.at(2).kind = op_kind::other; }},
        later_start{"scores_leave", [](partition& p) { p.outputs.push_back(scores); }},
        later_start{"divided_by_the_scores",
                    [](partition& p) { std::swap(p.at(2).inputs[0], p.at(2).inputs[1]); }}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

struct near_miss {
    const char* name;
    std::function<void(partition&)> change;
};

class near_misses : public testing::TestWithParam<near_miss> {};

TEST_P(near_misses, are_left_alone_with_a_reason) {
    partition made = causal();
    GetParam().change(made);
    std::string reason;
    EXPECT_FALSE(made.find(reason));
    EXPECT_FALSE(reason.empty());
}

INSTANTIATE_TEST_SUITE_P(
    of_a_causal_mask, near_misses,
    testing::Values(
        near_miss{"swapped_sources",
                  [](partition& p) { std::swap(p.at(3).inputs[1], p.at(3).inputs[2]); }},
        near_miss{"swapped_comparison",
                  [](partition& p) { std::swap(p.at(12).inputs[0], p.at(12).inputs[1]); }},
        near_miss{"another_comparison", [](partition& p) { p.at(12).kind = op_kind::other; }},
        near_miss{"row_index_of_another_axis", [](partition& p) { p.at(10).axis = 1; }},
        near_miss{"column_index_of_another_axis", [](partition& p) { p.at(11).axis = 2; }},
        near_miss{"index_of_another_shape",
                  [](partition& p) {
                      p.at(11).inputs[0].extents = dims{1, 4, 8, 1};
                  }},
        near_miss{"index_of_other_rows",
                  [](partition& p) {
                      p.at(10).inputs[0].extents = dims{1, 4, 1, 8};
                  }},
        near_miss{"index_of_vectors",
                  [](partition& p) {
                      p.at(10).inputs[0].extents = p.at(11).inputs[0].extents = dims{8};
                      p.at(11).axis = -1;
                  }},
        near_miss{
            "row_index_used_twice",
            [](partition& p) { p.ops.push_back(make(14, op_kind::other, {tensor(rows_id)}, 32)); }},
        near_miss{
            "moved_index_used_twice",
            [](partition& p) { p.ops.push_back(make(14, op_kind::other, {tensor(moved)}, 32)); }},
        near_miss{
            "mask_used_twice",
            [](partition& p) { p.ops.push_back(make(14, op_kind::other, {tensor(mask)}, 32)); }},
        near_miss{"mask_leaves", [](partition& p) { p.outputs.push_back(mask); }},
        near_miss{
            "masked_scores_used_twice",
            [](partition& p) { p.ops.push_back(make(14, op_kind::other, {tensor(scaled)}, 32)); }},
        near_miss{"index_leaves", [](partition& p) { p.outputs.push_back(columns_id); }},
        near_miss{
            "mask_of_another_operator",
            [](partition& p) {
                p.at(12) = make(12, op_kind::other, {tensor(moved), tensor(columns_id)}, mask);
            }},
        near_miss{"boundary_per_row",
                  [](partition& p) {
                      p.at(13).inputs[1].extents = {8, 1};
                  }},
        near_miss{"boundary_multiplied", [](partition& p) { p.at(13).kind = op_kind::multiply; }},
        near_miss{"no_broadcast", [](partition& p) { p.at(3).auto_broadcast = "none"; }},
        near_miss{"both_sources_made_inside",
                  [](partition& p) { p.at(3).inputs[2] = tensor(scores); }},
        near_miss{"two_selects",
                  [](partition& p) {
                      p.ops.push_back(
                          make(15, op_kind::select, {tensor(33), tensor(result), tensor(34)}, 35));
                  }}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

} // namespace
} // namespace maskwise::graph
