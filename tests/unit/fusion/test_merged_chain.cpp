// Tests which single-operator partitions are merged into one row chain.

#include "fusion/find_row_chain.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace maskwise::fusion {
namespace {

using namespace graph;

// The operators between the MatMuls. Each operator is a separate partition.
partition middle(bool is_causal) {
    partition graph = is_causal ? causal() : attention();
    std::erase_if(graph.ops, [](const op& each) { return each.id == 1 || each.id == 6; });
    return graph;
}

std::vector<merged_chain> merged(
    const partition& from,
    const std::function<bool(std::size_t)>& stands_alone = [](std::size_t) { return true; }) {
    return find_row_chains(from.ops, stands_alone);
}

std::vector<std::size_t> ids_of(const merged_chain& chain) {
    std::vector<std::size_t> ids;
    for (const op& each : chain.ops) ids.push_back(each.id);
    return ids;
}

TEST(merged_chain, merges_single_operators) {
    const auto matches = merged(middle(false));
    ASSERT_EQ(matches.size(), 1U);
    EXPECT_EQ(ids_of(matches[0]), (std::vector<std::size_t>{2, 3, 4, 5}));
    EXPECT_EQ(matches[0].chain.scores, scores);
    EXPECT_EQ(matches[0].chain.result, weights);
}

TEST(merged_chain, needs_a_soft_max) {
    for (const bool is_causal : {false, true}) {
        partition graph = middle(is_causal);
        graph.ops.pop_back();
        EXPECT_TRUE(merged(graph).empty()) << is_causal;
    }
}

TEST(merged_chain, has_producers_before_consumers) {
    partition graph = middle(true);
    std::reverse(graph.ops.begin(), graph.ops.end());
    const auto matches = merged(graph);
    ASSERT_EQ(matches.size(), 1U);
    EXPECT_EQ(ids_of(matches[0]), (std::vector<std::size_t>{2, 10, 13, 11, 12, 3, 4, 5}));
    EXPECT_TRUE(is_causal(matches[0].chain.steps[1]));
}

TEST(merged_chain, may_read_a_mask_of_another_partition) {
    partition graph = middle(false);
    graph.ops.push_back(make(9, op_kind::other, {tensor(30)}, mask));
    EXPECT_EQ(merged(graph, [](std::size_t id) { return id != 9; }).size(), 1U);
}

TEST(merged_chain, chooses_its_row_by_shape) {
    partition graph = middle(false);
    graph.at(2).kind = op_kind::multiply;
    std::swap(graph.at(2).inputs[0], graph.at(2).inputs[1]);
    std::swap(graph.at(3).inputs[1], graph.at(3).inputs[2]);
    const auto matches = merged(graph);
    ASSERT_EQ(matches.size(), 1U);
    EXPECT_EQ(matches[0].chain.scores, scores);
    EXPECT_EQ(std::get<row_select>(matches[0].chain.steps[1]).op, row_operator::select_masked);
}

// Both sources have the result's shape. The row is the source that the graph computes. If the graph
// computes both sources or neither source, the row is the first source.
TEST(merged_chain, chooses_one_of_two_rows) {
    partition graph = middle(false);
    graph.at(3).inputs[2] = tensor(fill);
    EXPECT_EQ(merged(graph)[0].chain.scores, scores);
    std::swap(graph.at(3).inputs[1], graph.at(3).inputs[2]);
    EXPECT_EQ(merged(graph)[0].chain.scores, scores);
    graph.ops.insert(graph.ops.begin(), make(9, op_kind::other, {tensor(30)}, fill));
    EXPECT_EQ(merged(graph)[0].chain.scores, fill);
    std::erase_if(graph.ops, [](const op& each) { return each.id == 2 || each.id == 9; });
    EXPECT_EQ(merged(graph)[0].chain.scores, fill);
}

TEST(merged_chain, gives_one_operator_to_one_chain) {
    partition graph = middle(false);
    graph.ops.push_back(
        make(15, op_kind::select, {tensor(33), tensor(weights), tensor(34, {})}, 35));
    graph.ops.push_back(with_axis(make(16, op_kind::soft_max, {tensor(35)}, 36), -1));
    const auto matches = merged(graph);
    ASSERT_EQ(matches.size(), 2U);
    EXPECT_EQ(ids_of(matches[1]), (std::vector<std::size_t>{15, 16}));
}

// After the change `spoil`, only `ops` are merged.
struct smaller_merge {
    const char* name;
    change spoil;
    std::vector<std::size_t> ops;
};

class near_misses_of_merging : public testing::TestWithParam<smaller_merge> {};

TEST_P(near_misses_of_merging, leave_operators_alone) {
    partition graph = middle(true);
    GetParam().spoil(graph);
    const auto matches = merged(graph);
    EXPECT_EQ(matches.empty() ? std::vector<std::size_t>{} : ids_of(matches[0]), GetParam().ops);
}

const std::vector<std::size_t> ops_after_mask{3, 4, 5}, no_merge;
const change index_the_scores =
    all_of({set_input(10, 0, tensor(scores)), set_input(11, 0, tensor(scores))});
const change index_an_inner_value = [](partition& p) {
    p.ops.push_back(with_axis(make(15, op_kind::gen_index, {tensor(scaled)}, 33), -1));
};
const change use_statistics = [](partition& p) {
    p.at(5).outputs.push_back(tensor(statistics));
    use_again(statistics)(p);
};

INSTANTIATE_TEST_SUITE_P(
    of_single_operators, near_misses_of_merging,
    testing::Values(
        smaller_merge{"scaled_scores_used_twice", use_again(scaled), {10, 13, 11, 12, 3, 4, 5}},
        smaller_merge{"another_gen_index_on_an_inner_value", index_an_inner_value, no_merge},
        smaller_merge{"another_gen_index_beside_statistics",
                      all_of({index_an_inner_value, use_statistics}), no_merge},
        // GenIndex still reads Divide's result.
        smaller_merge{"swapped_comparison", swap_inputs(12, 0, 1), no_merge},
        smaller_merge{"mask_used_twice", all_of({use_again(mask), index_the_scores}), {2, 3, 4, 5}},
        smaller_merge{"another_comparison",
                      all_of({set_kind(12, op_kind::other), index_the_scores}),
                      {2, 3, 4, 5}},
        smaller_merge{"soft_max_along_another_axis_without_indices",
                      all_of({set_axis(5, 1), set_kind(12, op_kind::other)}), no_merge},
        smaller_merge{"broadcast_in_between",
                      [](partition& p) {
                          p.at(2).inputs[0] = tensor(scores, {1, 1, 8, 8});
                          p.at(2).outputs[0] = p.at(10).inputs[0] = p.at(11).inputs[0] =
                              p.at(3).inputs[1] = tensor(scaled, {1, 1, 8, 8});
                      },
                      no_merge},
        smaller_merge{"rows_of_integers",
                      [](partition& p) { p.at(3).outputs[0].type = data_type::i32; }, no_merge},
        smaller_merge{"select_without_broadcast", forbid_broadcast(3), no_merge}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

TEST(merged_chain, skips_operators_of_larger_partitions) {
    for (const std::size_t alone : {3U, 5U})
        EXPECT_TRUE(merged(middle(false), [&](std::size_t id) { return id == alone; }).empty());
    const auto matches = merged(middle(false), [](std::size_t id) { return id != 2; });
    ASSERT_EQ(matches.size(), 1U);
    EXPECT_EQ(ids_of(matches[0]), ops_after_mask);
}

} // namespace
} // namespace maskwise::fusion
