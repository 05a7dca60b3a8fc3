// What is merged around a Select, and what nearly is.

#include "base/error.hpp"
#include "graph/compiled_expression.hpp"
#include "graph/expression_group.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace maskwise::graph {
namespace {

constexpr data_type f32 = data_type::f32, boolean = data_type::boolean;

logical_tensor tensor(std::size_t id, data_type type = f32, const dims& extents = {4, 33}) {
    logical_tensor made;
    made.id = id;
    made.type = type;
    made.rank_known = true;
    made.extents = extents;
    made.strides_elems = dims::filled(extents.rank(), 1);
    made.layout = layout_kind::strided;
    return made;
}

// Operators are numbered as they are added, tensors by the test.
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

    // The ids of each group's operators; `apart` is part of a larger partition.
    std::vector<std::vector<std::size_t>> groups(std::size_t apart = SIZE_MAX) const {
        std::vector<std::vector<std::size_t>> found;
        for (const auto& group : find_groups(ops, [&](std::size_t id) { return id != apart; })) {
            found.emplace_back();
            for (const op& each : group.ops) found.back().push_back(each.id);
        }
        return found;
    }
};

using ids = std::vector<std::vector<std::size_t>>;

// 0: x >= y -> 3; 1: cond 3 ? x : z -> 4; 2: tanh -> 5
builder compare_select_tanh() {
    builder made;
    made.add(op_kind::greater_equal, {tensor(0), tensor(1)}, tensor(3, boolean));
    made.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
    made.add(op_kind::tanh, {tensor(4)}, tensor(5));
    return made;
}

TEST(expression_group, takes_what_makes_and_what_uses) {
    const builder made = compare_select_tanh();
    EXPECT_EQ(made.groups(), (ids{{0, 1, 2}}));
    const auto group = find_groups(made.ops, [](std::size_t) { return true; })[0];
    EXPECT_EQ(to_string(group.expression),
              "0=input():f32 1=input():f32 2=input():f32 3=greater_equal(0,1) 4=select(3,0,2) "
              "5=tanh(4) -> f32");
    std::vector<std::size_t> inputs;
    for (const auto& input : group.inputs) inputs.push_back(input.id);
    EXPECT_EQ(inputs, (std::vector<std::size_t>{0, 1, 2}));
}

TEST(expression_group, leaves_a_select_alone_alone) {
    builder made;
    made.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
    made.add(op_kind::soft_max, {tensor(4)}, tensor(5));
    EXPECT_EQ(made.groups(), ids{});
}

TEST(expression_group, leaves_larger_partitions_whole) {
    EXPECT_EQ(compare_select_tanh().groups(0), (ids{{1, 2}}));
    EXPECT_EQ(compare_select_tanh().groups(1), ids{});
    EXPECT_EQ(compare_select_tanh().groups(2), (ids{{0, 1}}));
}

TEST(expression_group, keeps_values_that_others_use) {
    builder made = compare_select_tanh();
    made.add(op_kind::other, {tensor(3, boolean)}, tensor(9)); // the mask
    EXPECT_EQ(made.groups(), (ids{{1, 2}}));
    made = compare_select_tanh();
    made.add(op_kind::other, {tensor(4)}, tensor(9)); // the selected values
    EXPECT_EQ(made.groups(), (ids{{0, 1}}));
    made = compare_select_tanh(); // twice by the same operator
    made.ops[2] = op{2, op_kind::multiply, "", {}, {}, {}, {}, {tensor(4), tensor(4)}, {tensor(5)}};
    EXPECT_EQ(made.groups(), (ids{{0, 1}}));
}

TEST(expression_group, leaves_what_is_broadcast_in_between) {
    builder made;
    made.add(op_kind::greater_equal, {tensor(0, f32, {33}), tensor(1, f32, {33})},
             tensor(3, boolean, {33}));
    made.add(op_kind::select, {tensor(3, boolean, {33}), tensor(6), tensor(2)}, tensor(4));
    made.add(op_kind::add, {tensor(4), tensor(7, f32, {2, 4, 33})}, tensor(5, f32, {2, 4, 33}));
    EXPECT_EQ(made.groups(), ids{});
}

TEST(expression_group, wants_known_shapes) {
    builder made = compare_select_tanh();
    for (op& each : made.ops)
        for (auto& output : each.outputs) output.extents[0] = unknown_extent;
    EXPECT_EQ(made.groups(), ids{});
}

TEST(expression_group, leaves_types_that_no_expression_has) {
    builder made;
    made.add(op_kind::greater_equal, {tensor(0), tensor(1)}, tensor(3, boolean));
    made.add(op_kind::select,
             {tensor(3, boolean), tensor(6, data_type::i32), tensor(2, data_type::i32)},
             tensor(4, data_type::i32));
    EXPECT_EQ(made.groups(), ids{});
}

TEST(expression_group, wants_one_number_for_the_tensor) {
    builder made;
    made.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
    op& quantize = made.add(op_kind::quantize, {tensor(4)}, tensor(5, data_type::u8));
    EXPECT_EQ(made.groups(), ids{}); // a scale for each channel
    quantize.constants = {0.5F, 3.0F};
    EXPECT_EQ(made.groups(), (ids{{0, 1}}));
}

// src_0 and src_1 are never taken for each other, nor the sides of a comparison.
TEST(expression_group, keeps_sources_apart) {
    builder made;
    made.add(op_kind::greater_equal, {tensor(1), tensor(0)}, tensor(3, boolean));
    made.add(op_kind::exp, {tensor(2)}, tensor(6));
    made.add(op_kind::select, {tensor(3, boolean), tensor(6), tensor(0)}, tensor(4));
    const auto groups = find_groups(made.ops, [](std::size_t) { return true; });
    ASSERT_EQ(groups.size(), 1U);
    const auto& nodes = groups[0].expression.nodes;
    const auto node_of = [&](std::size_t id) {
        const auto& all = groups[0].inputs;
        return static_cast<int>(std::ranges::find(all, id, &logical_tensor::id) - all.begin());
    };
    const auto compare = std::find_if(nodes.begin(), nodes.end(), [](const auto& each) {
        return each.kind == jit::node_kind::greater_equal;
    });
    EXPECT_EQ(compare->arguments[0], node_of(1));
    EXPECT_EQ(compare->arguments[1], node_of(0));
    EXPECT_EQ(nodes[static_cast<std::size_t>(nodes.back().arguments[1])].kind, jit::node_kind::exp);
    EXPECT_EQ(nodes.back().arguments[2], node_of(0));
}

// What was bf16 in memory between two operators is rounded to bf16 inside the loop.
TEST(expression_group, rounds_between_operators) {
    builder made;
    const auto half = [](std::size_t id) { return tensor(id, data_type::bf16); };
    made.add(op_kind::add, {half(0), half(1)}, half(2));
    made.add(op_kind::select, {tensor(3, boolean), half(2), half(4)}, half(5));
    made.add(op_kind::multiply, {half(5), half(1)}, half(6));
    const auto groups = find_groups(made.ops, [](std::size_t) { return true; });
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(to_string(groups[0].expression),
              "0=input():bf16 1=input():bf16 2=input():boolean 3=input():bf16 4=add(0,1) "
              "5=type_cast(4):bf16 6=select(2,5,3) 7=multiply(6,1) -> bf16");
}

// Long chains become several groups, each of which surely compiles.
TEST(expression_group, stays_small) {
    builder made;
    made.add(op_kind::select, {tensor(100, boolean), tensor(101), tensor(102)}, tensor(0));
    for (std::size_t i = 0; i < 20; ++i) made.add(op_kind::tanh, {tensor(i)}, tensor(i + 1));
    EXPECT_EQ(made.groups(), (ids{{0, 1, 2, 3, 4, 5, 6}}));
}

// Compiled with tensors of one type, but for input 2.
compiled_expression compile_as(data_type type, data_type of_2) {
    const auto group = find_groups(compare_select_tanh().ops, [](std::size_t) { return true; })[0];
    const std::vector<logical_tensor> inputs{tensor(0, type), tensor(1, type), tensor(2, of_2)};
    std::vector<logical_tensor> outputs{tensor(5, type)};
    outputs[0].layout = layout_kind::any;
    return compile_group(group, inputs, outputs);
}

std::vector<data_type> types_of(const jit::expression& what) {
    std::vector<data_type> types;
    for (const auto& node : what.nodes)
        if (node.kind == jit::node_kind::input) types.push_back(node.type);
    types.push_back(what.result);
    return types;
}

TEST(expression_group, is_compiled_for_the_types_given) {
    if (!jit::can_compile(active_isa())) GTEST_SKIP() << "no expression is compiled here";
    for (const data_type type : {f32, data_type::bf16, data_type::f16})
        EXPECT_EQ(types_of(compile_as(type, type).plan->desc.expression),
                  (std::vector<data_type>{type, type, type, type}));
    EXPECT_THROW(compile_as(data_type::bf16, f32), invalid_argument);
    EXPECT_THROW(compile_as(data_type::i32, data_type::i32), invalid_argument);
}

} // namespace
} // namespace maskwise::graph
