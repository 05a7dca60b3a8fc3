// Tests the producers and consumers of values.

#include "graph/graph_index.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

namespace maskwise::graph {
namespace {

// Values 1 and 2 are inputs, 4 and 5 are outputs.
const std::vector<op> ops{
    make(10, op_kind::add, {tensor(1), tensor(2)}, 3),
    make(11, op_kind::multiply, {tensor(3), tensor(3)}, 4),
    make(12, op_kind::gen_index, {tensor(2)}, 5),
};

TEST(graph_index, finds_producers_and_consumers) {
    const graph_index index(ops);
    EXPECT_EQ(index.maker(3), ops.data());
    EXPECT_EQ(index.maker(1), nullptr);
    EXPECT_EQ(index.users(2).size(), 2U);
    EXPECT_EQ(index.users(3).size(), 2U); // one entry per input slot
    EXPECT_TRUE(index.users(4).empty());
}

TEST(graph_index, finds_the_only_consumer_of_a_value) {
    const graph_index index(ops);
    EXPECT_EQ(index.only_user(1), ops.data());
    EXPECT_EQ(index.only_user(2), nullptr);
    EXPECT_EQ(index.only_user(3), nullptr); // one operator uses the value twice
    EXPECT_EQ(index.only_user(4), nullptr);
}

TEST(graph_index, ignores_consumers_that_read_only_the_shape) {
    const graph_index index(ops);
    EXPECT_EQ(index.only_reader(1), ops.data());
    EXPECT_EQ(index.only_reader(2), ops.data());
    EXPECT_EQ(index.only_reader(3), nullptr);
    EXPECT_EQ(index.only_reader(4), nullptr);
}

TEST(graph_index, omits_excluded_producers_but_no_consumers) {
    const graph_index index(ops, [](std::size_t id) { return id != 10; });
    EXPECT_EQ(index.maker(3), nullptr);
    EXPECT_EQ(index.maker(4), &ops[1]);
    EXPECT_EQ(index.only_user(1), ops.data());
}

} // namespace
} // namespace maskwise::graph
