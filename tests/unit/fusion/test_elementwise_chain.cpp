// Tests that element-wise operators between a Select and a SoftMax become steps of one chain.

#include "fusion/find_row_chain.hpp"
#include "plan/row_plan.hpp"
#include "tensor/tensor_desc.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <utility>

namespace maskwise::fusion {
namespace {

using namespace graph;

constexpr data_type f32 = data_type::f32, bf16 = data_type::bf16, boolean = data_type::boolean;

logical_tensor tensor(std::size_t id, data_type type = f32, const dims& extents = {4, 33}) {
    logical_tensor result;
    result.id = id;
    result.type = type;
    result.rank_known = true;
    result.extents = extents;
    return result;
}

using ids = std::vector<std::vector<std::size_t>>;

// add() numbers operators from 0. Tests choose tensor ids.
struct builder {
    std::vector<op> ops;

    op& add(op_kind kind, std::vector<logical_tensor> inputs, const logical_tensor& output) {
        op next;
        next.id = ops.size();
        next.kind = kind;
        next.inputs = std::move(inputs);
        next.outputs = {output};
        ops.push_back(next);
        return ops.back();
    }

    void add_soft_max(const logical_tensor& input, const logical_tensor& output) {
        add(op_kind::soft_max, {input}, output).axis = -1;
    }

    std::vector<merged_chain> chains() const {
        return find_row_chains(ops, [](std::size_t) { return true; });
    }
    ids merged() const {
        ids operators;
        for (const auto& chain : chains()) {
            operators.emplace_back();
            for (const op& each : chain.ops) operators.back().push_back(each.id);
        }
        return operators;
    }
    // Returns the steps of the first chain as text, for dense tensors.
    std::string steps() const {
        const row_chain chain = chains().at(0).chain;
        row_desc desc;
        desc.scores = desc.result = dense_desc(f32, {4, 33});
        for (const auto& operand : chain.operands)
            desc.operands.push_back(dense_desc(operand.type, operand.extents));
        desc.steps = chain.steps;
        const std::string text = to_string(make_row_plan(desc, isa::scalar));
        return text.substr(text.find(':') + 2);
    }
};

// Operator 0: Select(3, 0, 2) -> 4. Operator 1: kind(4) -> 5. Operator 2: SoftMax(5) -> 6.
builder select_and_soft_max(op_kind kind, std::optional<std::array<float, 2>> constants = {}) {
    builder graph;
    graph.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
    graph.add(kind, {tensor(4)}, tensor(5)).constants = constants;
    graph.add_soft_max(tensor(5), tensor(6));
    return graph;
}

TEST(elementwise_chain, ends_in_a_soft_max) {
    builder graph = select_and_soft_max(op_kind::tanh);
    EXPECT_EQ(graph.merged(), (ids{{0, 1, 2}}));
    EXPECT_EQ(graph.steps(), "select tanh");
    graph.ops.pop_back();
    EXPECT_EQ(graph.merged(), ids{});
}

TEST(elementwise_chain, has_no_inner_value_with_another_consumer) {
    for (const std::size_t value : {4U, 5U}) {
        builder graph = select_and_soft_max(op_kind::tanh);
        graph.add(op_kind::other, {tensor(value)}, tensor(9));
        EXPECT_EQ(graph.merged(), ids{}) << value;
    }
}

TEST(elementwise_chain, needs_known_shapes) {
    builder graph = select_and_soft_max(op_kind::tanh);
    for (op& each : graph.ops)
        for (auto& output : each.outputs) output.extents[0] = unknown_extent;
    EXPECT_EQ(graph.merged(), ids{});
}

TEST(elementwise_chain, needs_the_constants_of_an_operator) {
    EXPECT_EQ(select_and_soft_max(op_kind::leaky_relu).merged(), ids{});
    EXPECT_EQ(select_and_soft_max(op_kind::leaky_relu, std::array{0.5F, 0.0F}).merged(),
              (ids{{0, 1, 2}}));
}

// The row may be the second operand.
TEST(elementwise_chain, swaps_operands) {
    const std::pair<op_kind, const char*> kinds[] = {{op_kind::add, "select add"},
                                                     {op_kind::multiply, "select multiply"},
                                                     {op_kind::subtract, "select subtract_from"},
                                                     {op_kind::divide, "select divide_into"}};
    for (const auto& [kind, steps] : kinds) {
        builder graph = select_and_soft_max(kind);
        graph.ops[1].inputs = {tensor(7), tensor(4)};
        EXPECT_EQ(graph.steps(), steps);
    }
}

TEST(elementwise_chain, may_have_several_selects) {
    builder graph = select_and_soft_max(op_kind::select);
    graph.ops[1].inputs = {tensor(10, boolean), tensor(11), tensor(4)};
    EXPECT_EQ(graph.merged(), (ids{{0, 1, 2}}));
    EXPECT_EQ(graph.steps(), "select select");
    const auto steps = graph.chains()[0].chain.steps;
    EXPECT_EQ(std::get<row_select>(steps[1]).op, row_operator::select_masked);
}

// Values are rounded if the graph stores them as bf16 between two operators. Select does not round.
TEST(elementwise_chain, rounds_between_operators) {
    builder graph;
    graph.add(op_kind::add, {tensor(0, bf16), tensor(1, bf16)}, tensor(2, bf16));
    graph.add(op_kind::select, {tensor(3, boolean), tensor(2, bf16), tensor(4, bf16)},
              tensor(5, bf16));
    graph.add(op_kind::multiply, {tensor(5, bf16), tensor(1, bf16)}, tensor(6, bf16));
    graph.add_soft_max(tensor(6, bf16), tensor(7, bf16));
    EXPECT_EQ(graph.steps(), "add round_bf16 select multiply round_bf16");
    builder cast;
    cast.add(op_kind::type_cast, {tensor(0)}, tensor(2, bf16));
    cast.add(op_kind::select, {tensor(3, boolean), tensor(2, bf16), tensor(4, bf16)},
             tensor(5, bf16));
    cast.add(op_kind::type_cast, {tensor(5, bf16)}, tensor(6));
    cast.add_soft_max(tensor(6), tensor(7));
    EXPECT_EQ(cast.merged(), (ids{{0, 1, 2, 3}}));
    EXPECT_EQ(cast.steps(), "round_bf16 select");
}

// A chain has at most max_row_actions steps, minus the steps reserved for a SoftMax.
TEST(elementwise_chain, has_at_most_max_row_actions_steps) {
    builder graph;
    for (std::size_t i = 0; i < 20; ++i) graph.add(op_kind::tanh, {tensor(i)}, tensor(i + 1));
    graph.add(op_kind::select, {tensor(100, boolean), tensor(20), tensor(102)}, tensor(21));
    graph.add_soft_max(tensor(21), tensor(22));
    ASSERT_EQ(graph.chains().size(), 1U);
    EXPECT_LE(graph.chains()[0].chain.steps.size(), max_row_actions);
    EXPECT_GT(graph.chains()[0].chain.steps.size(), max_row_actions - 4);
}

} // namespace
} // namespace maskwise::fusion
