// Element-wise operators around a Select that become rows, and what nearly does.

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
    logical_tensor made;
    made.id = id;
    made.type = type;
    made.rank_known = true;
    made.extents = extents;
    return made;
}

using ids = std::vector<std::vector<std::size_t>>;

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

    // `apart` is part of a larger partition.
    std::vector<merged_chain> chains(std::size_t apart = SIZE_MAX) const {
        return find_row_chains(ops, [&](std::size_t id) { return id != apart; });
    }
    ids merged(std::size_t apart = SIZE_MAX) const {
        ids found;
        for (const auto& chain : chains(apart)) {
            found.emplace_back();
            for (const op& each : chain.ops) found.back().push_back(each.id);
        }
        return found;
    }
    // The steps of the only chain, over tensors that are dense.
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

// 0: x >= y -> 3; 1: cond 3 ? x : z -> 4; 2: tanh -> 5
builder compare_select_tanh() {
    builder made;
    made.add(op_kind::greater_equal, {tensor(0), tensor(1)}, tensor(3, boolean));
    made.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
    made.add(op_kind::tanh, {tensor(4)}, tensor(5));
    return made;
}

TEST(elementwise_chain, takes_what_makes_and_what_uses) {
    const builder made = compare_select_tanh();
    EXPECT_EQ(made.merged(), (ids{{0, 1, 2}}));
    EXPECT_EQ(made.steps(), "select_compared tanh");
    const row_chain chain = made.chains()[0].chain;
    EXPECT_EQ(chain.scores, 0U);
    const auto step = std::get<row_compared_select>(chain.steps[0]);
    EXPECT_EQ(step.op, row_operator::select_kept);
    EXPECT_EQ(chain.operands[step.high].id, 0U);
    EXPECT_EQ(chain.operands[step.low].id, 1U);
    EXPECT_EQ(chain.operands[step.side].id, 2U);
}

TEST(elementwise_chain, leaves_a_select_alone_alone) {
    builder made;
    made.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
    made.add(op_kind::other, {tensor(4)}, tensor(5));
    EXPECT_EQ(made.merged(), ids{});
}

TEST(elementwise_chain, leaves_larger_partitions_whole) {
    EXPECT_EQ(compare_select_tanh().merged(0), (ids{{1, 2}}));
    EXPECT_EQ(compare_select_tanh().merged(1), ids{});
    EXPECT_EQ(compare_select_tanh().merged(2), (ids{{0, 1}}));
}

TEST(elementwise_chain, keeps_values_that_others_use) {
    builder made = compare_select_tanh();
    made.add(op_kind::other, {tensor(3, boolean)}, tensor(9)); // the mask
    EXPECT_EQ(made.merged(), (ids{{1, 2}}));
    made = compare_select_tanh();
    made.add(op_kind::other, {tensor(4)}, tensor(9)); // the selected values
    EXPECT_EQ(made.merged(), (ids{{0, 1}}));
    made = compare_select_tanh(); // twice by the same operator
    made.ops[2].kind = op_kind::multiply;
    made.ops[2].inputs = {tensor(4), tensor(4)};
    EXPECT_EQ(made.merged(), (ids{{0, 1}}));
}

TEST(elementwise_chain, leaves_what_is_broadcast_in_between) {
    builder made;
    made.add(op_kind::exp, {tensor(0, f32, {33})}, tensor(2, f32, {33}));
    made.add(op_kind::select, {tensor(3, boolean), tensor(6), tensor(2, f32, {33})}, tensor(4));
    made.add(op_kind::add, {tensor(4), tensor(7, f32, {2, 4, 33})}, tensor(5, f32, {2, 4, 33}));
    EXPECT_EQ(made.merged(), ids{});
}

TEST(elementwise_chain, wants_known_shapes) {
    builder made = compare_select_tanh();
    for (op& each : made.ops)
        for (auto& output : each.outputs) output.extents[0] = unknown_extent;
    EXPECT_EQ(made.merged(), ids{});
}

TEST(elementwise_chain, leaves_types_that_no_row_has) {
    builder made;
    made.add(op_kind::select,
             {tensor(3, boolean), tensor(6, data_type::i32), tensor(2, data_type::i32)},
             tensor(4, data_type::i32));
    made.add(op_kind::abs, {tensor(4, data_type::i32)}, tensor(5, data_type::i32));
    EXPECT_EQ(made.merged(), ids{});
    made = compare_select_tanh(); // a comparison of whole numbers stays oneDNN's
    made.ops[0].inputs = {tensor(7, data_type::i32), tensor(8, data_type::i32)};
    EXPECT_EQ(made.merged(), (ids{{1, 2}}));
}

TEST(elementwise_chain, wants_the_numbers_of_an_operator) {
    for (const op_kind kind : {op_kind::quantize, op_kind::clamp, op_kind::leaky_relu}) {
        builder made;
        made.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
        op& next = made.add(kind, {tensor(4)}, tensor(5));
        EXPECT_EQ(made.merged(), ids{});
        next.constants = {0.5F, 3.0F};
        EXPECT_EQ(made.merged(), (ids{{0, 1}}));
    }
}

// The row may be the second operand where the list has the operator turned.
TEST(elementwise_chain, turns_operators) {
    const std::pair<op_kind, const char*> kinds[] = {{op_kind::add, "select add"},
                                                     {op_kind::multiply, "select multiply"},
                                                     {op_kind::subtract, "select subtract_from"},
                                                     {op_kind::divide, "select divide_into"},
                                                     {op_kind::maximum, ""},
                                                     {op_kind::minimum, ""}};
    for (const auto& [kind, steps] : kinds) {
        builder made;
        made.add(op_kind::select, {tensor(3, boolean), tensor(0), tensor(2)}, tensor(4));
        made.add(kind, {tensor(6), tensor(4)}, tensor(5));
        EXPECT_EQ(made.merged().empty() ? "" : made.steps(), steps);
    }
}

TEST(elementwise_chain, takes_several_selects) {
    builder made = compare_select_tanh();
    made.add(op_kind::select, {tensor(10, boolean), tensor(11), tensor(5)}, tensor(12));
    EXPECT_EQ(made.merged(), (ids{{0, 1, 2, 3}}));
    EXPECT_EQ(made.steps(), "select_compared tanh select");
    const auto steps = made.chains()[0].chain.steps;
    EXPECT_EQ(std::get<row_select>(steps[2]).op, row_operator::select_masked);
}

// A value that was bf16 in memory between two operators is rounded. Select moves values.
TEST(elementwise_chain, rounds_between_operators) {
    builder made;
    made.add(op_kind::add, {tensor(0, bf16), tensor(1, bf16)}, tensor(2, bf16));
    made.add(op_kind::select, {tensor(3, boolean), tensor(2, bf16), tensor(4, bf16)},
             tensor(5, bf16));
    made.add(op_kind::multiply, {tensor(5, bf16), tensor(1, bf16)}, tensor(6, bf16));
    EXPECT_EQ(made.steps(), "add round_bf16 select multiply round_bf16");
    builder cast;
    cast.add(op_kind::type_cast, {tensor(0)}, tensor(2, bf16));
    cast.add(op_kind::select, {tensor(3, boolean), tensor(2, bf16), tensor(4, bf16)},
             tensor(5, bf16));
    cast.add(op_kind::type_cast, {tensor(5, bf16)}, tensor(6));
    EXPECT_EQ(cast.merged(), (ids{{0, 1, 2}}));
    EXPECT_EQ(cast.steps(), "round_bf16 select");
}

// Longer chains than rows have room for end before that.
TEST(elementwise_chain, stays_small) {
    builder made;
    made.add(op_kind::select, {tensor(100, boolean), tensor(101), tensor(102)}, tensor(0));
    for (std::size_t i = 0; i < 20; ++i) made.add(op_kind::tanh, {tensor(i)}, tensor(i + 1));
    ASSERT_EQ(made.chains().size(), 1U);
    EXPECT_LE(made.chains()[0].chain.steps.size(), max_row_actions);
    EXPECT_GT(made.chains()[0].chain.steps.size(), max_row_actions - 4);
}

} // namespace
} // namespace maskwise::fusion
