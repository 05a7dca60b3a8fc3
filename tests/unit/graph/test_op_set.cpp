// Tests the inputs of operator sets, the division of a graph, and topological order.

#include "graph/op_set.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

namespace maskwise::graph {
namespace {

using id_list = std::vector<std::size_t>;

id_list ids_of(const std::vector<op>& ops) {
    id_list ids;
    for (const op& each : ops) ids.push_back(each.id);
    return ids;
}

id_list ids_of(const std::vector<logical_tensor>& tensors) {
    id_list ids;
    for (const auto& each : tensors) ids.push_back(each.id);
    return ids;
}

TEST(op_set, separates_results_from_inputs) {
    const auto ops = attention().ops;
    EXPECT_TRUE(makes(ops, weights));
    EXPECT_FALSE(makes(ops, query));
    EXPECT_TRUE(reads(ops, query));
    EXPECT_FALSE(reads(ops, result));
}

// outer_inputs has one entry per slot: a value that two operators read has two entries.
TEST(op_set, outer_inputs_have_no_producer_in_the_set) {
    const std::vector<op> ops{make(1, op_kind::add, {tensor(10), tensor(11)}, 20),
                              make(2, op_kind::add, {tensor(20), tensor(10)}, 21)};
    EXPECT_EQ(ids_of(outer_inputs(ops)), (id_list{10, 11, 10}));
}

TEST(division, cuts_attention_at_its_chain) {
    const auto parts = divide(attention().ops, id_list{2, 3, 4, 5}, scores);
    EXPECT_EQ(ids_of(parts.before), (id_list{1}));
    EXPECT_EQ(ids_of(parts.after), (id_list{6}));
}

// Operator 1 computes the scores from operator 5's value, which operator 6 reads, too. Operator 7
// is independent.
TEST(division, puts_producers_of_the_scores_before_and_the_rest_after) {
    const std::vector<op> ops{make(5, op_kind::tanh, {tensor(50)}, 51),
                              make(1, op_kind::other, {tensor(51)}, 52),
                              make(7, op_kind::tanh, {tensor(53)}, 54),
                              make(2, op_kind::select, {tensor(60), tensor(52), tensor(61)}, 62),
                              make(6, op_kind::add, {tensor(62), tensor(51)}, 63)};
    const auto parts = divide(ops, id_list{2}, 52);
    EXPECT_EQ(ids_of(parts.before), (id_list{5, 1}));
    EXPECT_EQ(ids_of(parts.after), (id_list{7, 6}));
}

TEST(division, of_scores_from_outside_has_nothing_before) {
    const std::vector<op> ops{make(2, op_kind::select, {tensor(60), tensor(52), tensor(61)}, 62),
                              make(3, op_kind::tanh, {tensor(62)}, 63)};
    const auto parts = divide(ops, id_list{2}, 52);
    EXPECT_TRUE(parts.before.empty());
    EXPECT_EQ(ids_of(parts.after), (id_list{3}));
}

TEST(topological_order, keeps_a_list_that_is_in_order) {
    const std::vector<node_ports> nodes{{{1}, {2}}, {{7}, {8}}, {{2}, {3}}, {{3, 8}, {9}}};
    EXPECT_EQ(topological_order(nodes), (id_list{0, 1, 2, 3}));
}

TEST(topological_order, puts_producers_first_in_the_given_order) {
    const std::vector<node_ports> nodes{{{3, 8}, {9}}, {{2}, {3}}, {{7}, {8}}, {{1}, {2}}};
    EXPECT_EQ(topological_order(nodes), (id_list{2, 3, 1, 0}));
}

// One node reads a value in two slots. The other node reads its own output.
TEST(topological_order, counts_a_producer_once_and_ignores_self_references) {
    const std::vector<node_ports> nodes{{{2, 2}, {3}}, {{1, 2}, {2}}};
    EXPECT_EQ(topological_order(nodes), (id_list{1, 0}));
}

} // namespace
} // namespace maskwise::graph
