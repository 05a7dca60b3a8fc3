// Tests partitions that contain a row chain, or almost contain one.

#include "fusion/chain_finder.hpp"
#include "fusion/find_row_chain.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

namespace maskwise::fusion {
namespace {

using namespace graph;

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
    const row_chain chain = attention().chain();
    EXPECT_EQ(chain.scores, scores);
    EXPECT_EQ(chain.result, weights);
    EXPECT_EQ(operators(chain),
              (std::vector{row_operator::divide, row_operator::select_kept, row_operator::add}));
    EXPECT_TRUE(chain.soft_max);
    EXPECT_EQ(chain.op_ids.size(), 4U);
}

TEST(row_chain, finds_the_source_with_the_scores) {
    partition graph = attention();
    std::swap(graph.at(3).inputs[1], graph.at(3).inputs[2]);
    const row_chain chain = graph.chain();
    const auto& select = std::get<row_select>(chain.steps[1]);
    EXPECT_EQ(select.op, row_operator::select_masked);
    EXPECT_EQ(chain.operands[*select.cond].id, mask);
    EXPECT_EQ(chain.operands[select.side].id, fill);
}

TEST(row_chain, replaces_a_mask_of_indices) {
    const row_chain chain = causal().chain();
    EXPECT_EQ(chain.operands[std::get<row_select>(chain.steps[1]).side].id, fill);
    ASSERT_EQ(chain.causal_offset.size(), 1U);
    EXPECT_EQ(chain.causal_offset[0].tensor.id, term);
    EXPECT_FALSE(chain.causal_offset[0].is_subtracted);
    EXPECT_EQ(chain.op_ids.size(), 8U);
}

TEST(row_chain, keeps_inf_as_zero) {
    partition graph = attention();
    graph.at(5).mode = "inf_as_zero";
    EXPECT_TRUE(graph.chain().soft_max->inf_as_zero);
    graph.at(5).mode = "none";
    EXPECT_FALSE(graph.chain().soft_max->inf_as_zero);
}

TEST(row_chain, may_have_a_soft_max_without_a_select) {
    partition graph = attention();
    graph.at(3).kind = op_kind::other;
    graph.at(5).mode = "nan_as_zero";
    const std::vector<std::size_t> outputs = {weights};
    const row_chain chain = find_chain(graph.at(5), partition_policy(graph.ops, outputs));
    EXPECT_EQ(operators(chain), std::vector{row_operator::add});
    EXPECT_EQ(chain.scores, selected);
    EXPECT_EQ(chain.result, weights);
    EXPECT_TRUE(chain.soft_max->nan_as_zero);
    EXPECT_FALSE(chain.soft_max->inf_as_zero);
    graph.at(5).axis = 1;
    EXPECT_THROW(find_chain(graph.at(5), partition_policy(graph.ops, outputs)), no_chain);
}

TEST(row_chain, ends_at_a_value_with_another_consumer) {
    partition graph = attention();
    graph.outputs.push_back(selected);
    const row_chain chain = graph.chain();
    EXPECT_EQ(chain.result, selected);
}

TEST(row_chain, begins_at_a_value_with_another_consumer) {
    partition graph = attention();
    graph.ops.push_back(make(9, op_kind::other, {tensor(scores)}, 30));
    const row_chain chain = graph.chain();
    EXPECT_EQ(chain.scores, scaled);
}

TEST(row_chain, swaps_operands_of_a_commutative_operator) {
    partition graph = attention();
    std::swap(graph.at(4).inputs[0], graph.at(4).inputs[1]);
    const row_chain chain = graph.chain();
    EXPECT_EQ(chain.result, weights);
    EXPECT_EQ(chain.operands[std::get<row_combine>(chain.steps[2]).side].id, bias);
}

TEST(row_chain, replaces_subtract_by_subtract_from) {
    partition graph = attention();
    graph.at(4).kind = op_kind::subtract;
    std::swap(graph.at(4).inputs[0], graph.at(4).inputs[1]);
    const row_chain chain = graph.chain();
    EXPECT_EQ(chain.result, weights);
    EXPECT_EQ(std::get<row_combine>(chain.steps[2]).op, row_operator::subtract_from);
}

TEST(row_chain, ends_before_a_soft_max_along_another_axis) {
    partition graph = attention();
    graph.at(5).axis = 1;
    EXPECT_EQ(graph.chain().result, added);
}

TEST(row_chain, computes_statistics_with_a_reader) {
    partition graph = attention();
    graph.at(5).outputs.push_back(tensor(statistics));
    EXPECT_FALSE(graph.chain().statistics);
    graph.outputs.push_back(statistics);
    const row_chain chain = graph.chain();
    ASSERT_TRUE(chain.statistics);
    EXPECT_EQ(chain.statistics->id, statistics);
    EXPECT_EQ(chain.result, weights);
}

// Operators 20 and 21 put a soft cap between Divide and Select.
TEST(row_chain, includes_a_soft_cap) {
    partition graph = attention();
    graph.at(3).inputs[1] = tensor(capped);
    graph.ops.insert(graph.ops.begin() + 2,
                     {make(20, op_kind::tanh, {tensor(scaled)}, bent),
                      make(21, op_kind::multiply, {tensor(factor, {1}), tensor(bent)}, capped)});
    const row_chain chain = graph.chain();
    EXPECT_EQ(chain.scores, scores);
    EXPECT_EQ(operators(chain),
              (std::vector{row_operator::divide, row_operator::tanh, row_operator::multiply,
                           row_operator::select_kept, row_operator::add}));
}

// Attention of an int8 graph. Operators 7 and 8 follow SoftMax.
partition quantized() {
    partition graph = attention();
    graph.at(6).inputs[0] = tensor(bytes);
    op quantize = make(8, op_kind::quantize, {tensor(cast)}, bytes);
    quantize.constants = {0.5F, 3.0F};
    graph.ops.insert(graph.ops.end() - 1,
                     {make(7, op_kind::type_cast, {tensor(weights)}, cast), quantize});
    return graph;
}

TEST(row_chain, rounds_to_the_types_between_operators) {
    partition graph = attention();
    graph.at(2).outputs[0].type = data_type::bf16;
    graph.at(4).outputs[0].type = data_type::f16;
    const row_chain chain = graph.chain();
    EXPECT_EQ(operators(chain),
              (std::vector{row_operator::divide, row_operator::round_bf16,
                           row_operator::select_kept, row_operator::add, row_operator::round_f16}));
}

TEST(row_chain, ends_with_a_quantize) {
    const row_chain chain = quantized().chain();
    EXPECT_EQ(chain.result, bytes);
    ASSERT_TRUE(chain.quantize);
    EXPECT_EQ(chain.quantize->scale, 0.5F);
    EXPECT_EQ(chain.quantize->zero_point, 3.0F);
}

// A change that shortens the chain or prevents any chain.
struct near_miss {
    const char* name;
    change spoil;
    std::size_t end = 0; // result of the shorter chain
};
std::string name_of(const testing::TestParamInfo<near_miss>& chosen) {
    return chosen.param.name;
}

class near_misses_below : public testing::TestWithParam<near_miss> {};

TEST_P(near_misses_below, end_the_chain) {
    partition graph = quantized();
    GetParam().spoil(graph);
    const row_chain chain = graph.chain();
    EXPECT_EQ(chain.result, GetParam().end);
    EXPECT_FALSE(chain.quantize && chain.result != bytes);
}

INSTANTIATE_TEST_SUITE_P(
    after_the_select, near_misses_below,
    testing::Values(near_miss{"scale_for_each_channel",
                              [](partition& p) { p.at(8).constants.reset(); }, cast},
                    near_miss{"cast_is_an_output", output(cast), cast},
                    near_miss{"cast_used_twice", use_again(cast), cast},
                    near_miss{"arithmetic_after_soft_max",
                              [](partition& p) {
                                  p.at(7).kind = op_kind::multiply;
                                  p.at(7).inputs.push_back(tensor(factor, {1}));
                              },
                              weights},
                    near_miss{"second_soft_max",
                              all_of({set_kind(7, op_kind::soft_max), set_axis(7, -1)}), weights},
                    near_miss{"soft_max_along_another_axis", set_axis(5, 2), added},
                    near_miss{"soft_max_without_an_axis", set_axis(5, {}), added},
                    near_miss{"operand_computed_in_the_partition", make_inside(bias), selected},
                    near_miss{"added_to_itself", set_input(4, 1, tensor(selected)), selected},
                    near_miss{"add_without_broadcast", forbid_broadcast(4), selected},
                    near_miss{"unknown_operator", set_kind(4, op_kind::other), selected}),
    name_of);

// A Select, then `count` operators of `kind`.
partition after_select(op_kind kind, std::size_t count, bool has_operand,
                       data_type type = data_type::f32) {
    partition graph{{make(1, op_kind::other, {tensor(query), tensor(key)}, scores),
                     make(3, op_kind::select, {tensor(mask), tensor(scores), tensor(fill)}, 100)},
                    {100 + count}};
    for (std::size_t value = 100; value < 100 + count; ++value) {
        op next = make(value, kind, {tensor(value)}, value + 1);
        next.outputs[0].type = type;
        if (has_operand) next.inputs.push_back(tensor(value + 100));
        graph.ops.push_back(next);
    }
    return graph;
}

std::size_t length_after_select(op_kind kind, bool has_operand, data_type type = data_type::f32) {
    return after_select(kind, 12, has_operand, type).chain().op_ids.size() - 1;
}

// The Select uses two operands and one step. Two steps are reserved for the last rounding and a
// SoftMax.
TEST(row_chain, ends_at_the_largest_number_of_operands_or_steps) {
    EXPECT_EQ(length_after_select(op_kind::add, true), max_row_operands - 2);
    EXPECT_EQ(length_after_select(op_kind::tanh, false), max_row_actions - 3);
    EXPECT_EQ(length_after_select(op_kind::type_cast, false, data_type::bf16), max_row_actions - 3);
}

// A search from the SoftMax back to the Select finds chains of the same maximum length.
TEST(row_chain, reaches_a_select_from_a_soft_max) {
    for (const auto& [kind, count] : {std::pair{op_kind::add, max_row_operands - 2},
                                      std::pair{op_kind::tanh, max_row_actions - 3}}) {
        partition graph = after_select(kind, count, kind == op_kind::add);
        graph.ops.push_back(
            with_axis(make(5, op_kind::soft_max, {tensor(100 + count)}, weights), -1));
        graph.outputs = {weights};
        const row_chain chain = find_chain(graph.at(5), partition_policy(graph.ops, graph.outputs));
        EXPECT_EQ(chain.op_ids.size(), count + 2);
        EXPECT_EQ(chain.scores, scores);
    }
}

TEST(row_chain, needs_one_number_for_the_boundary) {
    partition graph = causal();
    graph.at(13).inputs[1].extents = {1};
    graph.at(10).axis = 2;
    std::string reason;
    EXPECT_TRUE(graph.find(reason)) << reason;
    graph.at(13).inputs[1].extents = {3};
    EXPECT_FALSE(graph.find(reason));
}

class near_misses_above : public testing::TestWithParam<near_miss> {};

TEST_P(near_misses_above, begin_after_the_scale) {
    partition graph = attention();
    GetParam().spoil(graph);
    EXPECT_EQ(graph.chain().scores, scaled);
}

INSTANTIATE_TEST_SUITE_P(before_the_select, near_misses_above,
                         testing::Values(near_miss{"scale_without_broadcast", forbid_broadcast(2)},
                                         near_miss{"scale_computed_in_the_partition",
                                                   set_input(2, 1, tensor(scores))},
                                         near_miss{"unknown_operator", set_kind(2, op_kind::other)},
                                         near_miss{"scores_are_an_output", output(scores)}),
                         name_of);

class near_misses : public testing::TestWithParam<near_miss> {};

TEST_P(near_misses, are_left_alone_with_a_reason) {
    partition graph = causal();
    GetParam().spoil(graph);
    std::string reason;
    EXPECT_FALSE(graph.find(reason));
    EXPECT_FALSE(reason.empty());
}

const dims vector{8}, column{1, 4, 8, 1}, short_column{8, 1}, line{1, 4, 1, 8};

INSTANTIATE_TEST_SUITE_P(
    of_a_causal_mask, near_misses,
    testing::Values(
        near_miss{"swapped_sources", swap_inputs(3, 1, 2)},
        near_miss{"swapped_comparison", swap_inputs(12, 0, 1)},
        near_miss{"another_comparison", set_kind(12, op_kind::other)},
        near_miss{"row_index_of_another_axis", set_axis(10, 1)},
        near_miss{"column_index_of_another_axis", set_axis(11, 2)},
        near_miss{"column_index_of_a_single_column", set_input(11, 0, tensor(scaled, column))},
        near_miss{"row_index_of_a_single_row", set_input(10, 0, tensor(scaled, line))},
        near_miss{"index_of_vectors",
                  all_of({set_input(10, 0, tensor(scaled, vector)),
                          set_input(11, 0, tensor(scaled, vector)), set_axis(11, -1)})},
        near_miss{"row_index_used_twice", use_again(rows_id)},
        near_miss{"moved_index_used_twice", use_again(moved)},
        near_miss{"mask_used_twice", use_again(mask)}, near_miss{"mask_is_an_output", output(mask)},
        near_miss{"masked_scores_used_twice", use_again(scaled)},
        near_miss{"column_index_is_an_output", output(columns_id)},
        near_miss{
            "mask_of_another_operator",
            [](partition& p) {
                p.at(12) = make(12, op_kind::other, {tensor(moved), tensor(columns_id)}, mask);
            }},
        near_miss{"boundary_per_row", set_input(13, 1, tensor(term, short_column))},
        near_miss{"boundary_is_multiplied", set_kind(13, op_kind::multiply)},
        near_miss{"select_without_broadcast", forbid_broadcast(3)},
        near_miss{"both_sources_computed_in_the_partition", set_input(3, 2, tensor(scores))},
        near_miss{"two_selects",
                  [](partition& p) {
                      p.ops.push_back(
                          make(15, op_kind::select, {tensor(33), tensor(result), tensor(34)}, 35));
                  }}),
    name_of);

} // namespace
} // namespace maskwise::fusion
