// Tests which single Selects are claimed, and the errors of compile.

#include "base/error.hpp"
#include "graph/compiled_select.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace maskwise::graph {
namespace {

logical_tensor dense(std::size_t id, data_type type, const dims& extents) {
    logical_tensor desc{id, type, true, extents, layout_kind::strided, extents, {}};
    std::int64_t step = 1;
    for (int d = extents.rank() - 1; d >= 0; step *= extents[d--]) desc.strides_elems[d] = step;
    return desc;
}

op select(data_type type = data_type::f32) {
    op node;
    node.kind = op_kind::select;
    node.inputs = {dense(0, data_type::boolean, {2, 3}), dense(1, type, {2, 3}),
                   dense(2, type, {2, 3})};
    node.outputs = {dense(3, type, {2, 3})};
    return node;
}

std::string reason_against(const op& candidate) {
    std::string reason;
    return can_claim(candidate, reason) ? "claimed" : reason;
}

TEST(can_claim, needs_a_select_of_three_inputs_and_one_output) {
    EXPECT_EQ(reason_against(select()), "claimed");
    const std::string other = "not a Select of three inputs and one output";
    op node = select();
    node.kind = op_kind::add;
    EXPECT_EQ(reason_against(node), other);
    node = select();
    node.inputs.pop_back();
    EXPECT_EQ(reason_against(node), other);
    node = select();
    node.outputs.push_back(node.outputs[0]);
    EXPECT_EQ(reason_against(node), other);
}

TEST(can_claim, needs_the_types_of_the_schema) {
    for (const data_type type : {data_type::f32, data_type::bf16, data_type::f16})
        EXPECT_EQ(reason_against(select(type)), "claimed") << to_string(type);
    EXPECT_EQ(reason_against(select(data_type::i32)),
              "onednn::Select: src_0 is i32, expected f32|bf16|f16");
    op node = select();
    node.outputs[0].type = data_type::f16;
    EXPECT_TRUE(test::has(reason_against(node), {"dst is f16"}));
}

TEST(types_fit_schema, checks_the_tensors_of_compile) {
    const op node = select();
    auto inputs = node.inputs;
    EXPECT_TRUE(types_fit_schema(node, inputs, node.outputs));
    inputs[2].type = data_type::bf16;
    EXPECT_FALSE(types_fit_schema(node, inputs, node.outputs));
}

// Returns the error text, or "" if compile succeeds.
std::string refusal_of(const op& node) {
    return test::refusal<error>([&] { compile_select(node, node.inputs, node.outputs); });
}

TEST(compile_select, refuses_an_unknown_word_for_broadcasting) {
    op node = select();
    node.auto_broadcast = "pdpd";
    EXPECT_EQ(refusal_of(node), "auto_broadcast is 'pdpd', expected none or numpy");
    node.auto_broadcast = "none";
    EXPECT_EQ(refusal_of(node), "");
}

TEST(compile_select, refuses_a_dst_of_another_shape) {
    op node = select();
    node.outputs[0] = dense(3, data_type::f32, {3, 3});
    EXPECT_EQ(refusal_of(node), "dst is given as {3,3}, but its inferred shape is {2,3}");
    node.outputs[0] = dense(3, data_type::f32, {2, 2, 3});
    EXPECT_EQ(refusal_of(node), "dst is given as {2,2,3}, but its inferred shape is {2,3}");
}

TEST(compile_select, names_the_input_without_strides) {
    const char* const names[] = {"cond", "src_0", "src_1"};
    for (std::size_t i = 0; i < std::size(names); ++i) {
        op node = select();
        node.inputs[i].layout = layout_kind::any;
        EXPECT_EQ(refusal_of(node).find(names[i]), 0U) << refusal_of(node);
    }
}

TEST(compile_select, names_the_input_of_a_wrong_type) {
    const std::array reasons{"cond is bf16, expected boolean",
                             "src_1 is f32, expected bf16, the type of src_0",
                             "src_1 is bf16, expected f32, the type of src_0"};
    for (std::size_t input = 0; input < reasons.size(); ++input) {
        op node = select();
        node.inputs[input].type = data_type::bf16;
        EXPECT_EQ(refusal_of(node), std::string("onednn::Select: ") + reasons[input]);
    }
}

TEST(to_desc, counts_strides_in_bytes) {
    const logical_tensor rows = dense(4, data_type::bf16, {5, 7});
    EXPECT_EQ(to_desc(rows).strides_bytes, (dims{14, 2}));
}

TEST(to_desc, refuses_unreadable_tensors) {
    const auto refusal = [](const auto& change) {
        logical_tensor desc = dense(4, data_type::f32, {2, 3});
        change(desc);
        return test::refusal<error>([&] { to_desc(desc); });
    };
    EXPECT_EQ(refusal([](auto& desc) { desc.layout = layout_kind::any; }),
              "tensor 4 ({2,3}) has no known shape and strides");
    EXPECT_EQ(refusal([](auto& desc) { desc.extents[0] = unknown_extent; }),
              "tensor 4 ({?,3}) has no known shape and strides");
    EXPECT_EQ(refusal([](auto& desc) { desc.rank_known = false; }),
              "tensor 4 (unknown rank) has no known shape and strides");
    EXPECT_EQ(refusal([](auto& desc) { desc.strides_elems[1] = -1; }),
              "strides {3,-1} of tensor 4 are negative");
    EXPECT_EQ(refusal([](auto& desc) { desc.strides_elems[0] = INT64_MAX / 2; }),
              "strides {4611686018427387903,1} of tensor 4 overflow 64 bits in bytes");
}

} // namespace
} // namespace maskwise::graph
