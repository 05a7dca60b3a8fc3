#include "support/texts.hpp"
#include "unit/support.hpp"

#include "model/infer_shapes.hpp"

#include <gtest/gtest.h>

namespace maskwise::bench {
namespace {

std::string error_of(const std::string& text) {
    return test::refusal<input_error>([&] { parse_case(text, "case.json"); });
}

TEST(case_reader, reads_what_a_dump_writes) {
    const graph g = parse_case(select_text(), "case.json");
    ASSERT_EQ(g.ops.size(), 1U);
    EXPECT_EQ(g.ops[0].id, 140243871618688U); // needs 64 bits
    EXPECT_EQ(g.ops[0].inputs[0].dtype, data_type::boolean);
    EXPECT_TRUE(g.ops[0].inputs[2].shape.empty()); // 0-D
    EXPECT_EQ(g.ops[0].attr<std::string>("auto_broadcast", ""), "numpy");
    EXPECT_FALSE(g.fpmath_apply_to_int); // absent in older files
}

TEST(case_reader, unknown_shapes_and_strides_stay_unknown) {
    const std::string unknown = "[-9223372036854775808]";
    const graph no_rank = parse_case(select_text("[2, 3]", unknown, unknown), "case.json");
    EXPECT_FALSE(no_rank.ops[0].outputs[0].rank_known);
    EXPECT_EQ(with_known_shapes(no_rank).ops[0].outputs[0].shape, (dims{2, 3}));
    const graph no_stride = parse_case(select_text("[2, 3]", "[2, 3]", unknown), "case.json");
    EXPECT_TRUE(no_stride.ops[0].outputs[0].rank_known);
    EXPECT_TRUE(no_stride.ops[0].outputs[0].strides.empty());
}

TEST(case_reader, names_the_file_and_the_fault) {
    EXPECT_TRUE(error_of("{").starts_with("case.json: not a case: parse error at line 1"));
    EXPECT_TRUE(test::has(error_of("{}"), {"graph"}));
    std::string text = select_text();
    text.replace(text.find("\"Select\""), 8, "\"Sellect\"");
    EXPECT_TRUE(test::has(error_of(text), {"unknown kind 'Sellect'"}));
    text = select_text();
    text.replace(text.find("\"f32\""), 5, "\"f31\"");
    EXPECT_TRUE(test::has(error_of(text), {"unknown dtype 'f31'"}));
    EXPECT_TRUE(test::has(error_of(select_text("[2, 3]", "[2, 3]", "[1]")), {"1 strides"}));
}

TEST(case_reader, the_printed_graph_reads_back) {
    const graph g = parse_case(select_text("[1, 3]"), "case.json");
    const std::string text = graph_text(g);
    EXPECT_EQ(graph_text(parse_case(text, "again.json")), text);
}

TEST(case_reader, sorts_producers_before_consumers_and_refuses_cycles) {
    const auto t = [](std::size_t id) { return make_tensor(id, data_type::f32, {4}); };
    graph g;
    g.ops = {make_op("Exp", {t(1)}, {t(2)}), make_op("Tanh", {t(0)}, {t(1)})};
    sort_topologically(g);
    EXPECT_EQ(g.ops[0].kind, "Tanh");
    g.ops[0].inputs[0] = t(2);
    EXPECT_THROW(sort_topologically(g), input_error);
}

TEST(infer_shapes, follow_the_operators) {
    const auto f32 = [](dims shape) { return make_tensor(0, data_type::f32, std::move(shape)); };
    const auto shape = [](const op& o) { return infer_output_shapes(o)->at(0); };
    const auto out = f32({});
    EXPECT_EQ(shape(make_op("Add", {f32({2, 1, 4}), f32({3, 1})}, {out})), (dims{2, 3, 4}));
    EXPECT_EQ(shape(make_op("MatMul", {f32({1, 8, 2, 5, 7}), f32({1, 8, 1, 9, 7})}, {out},
                            {{"transpose_b", true}})),
              (dims{1, 8, 2, 5, 9}));
    EXPECT_EQ(
        shape(make_op("StaticTranspose", {f32({2, 3, 4})}, {out}, {{"order", dims{0, -1, 1}}})),
        (dims{2, 4, 3}));
    EXPECT_EQ(shape(make_op("StaticReshape", {f32({2, 3, 4})}, {out},
                            {{"shape", dims{0, -1}}, {"special_zero", true}})),
              (dims{2, 12}));
    EXPECT_EQ(shape(make_op("ReduceSum", {f32({2, 3, 4})}, {out},
                            {{"axes", dims{-1}}, {"keep_dims", false}})),
              (dims{2, 3}));
    EXPECT_THROW(shape(make_op("Add", {f32({2}), f32({3})}, {out})), input_error);
    EXPECT_FALSE(infer_output_shapes(make_op("Convolution", {f32({2})}, {out})).has_value());
}

TEST(infer_shapes, cond_takes_no_part_in_a_select) {
    const auto out = make_tensor(3, data_type::f32, {});
    const op o =
        make_op("Select",
                {make_tensor(0, data_type::boolean, {3, 5}), make_tensor(1, data_type::f32, {4, 1}),
                 make_tensor(2, data_type::f32, {2, 3, 1, 5})},
                {out});
    EXPECT_EQ(infer_output_shapes(o)->at(0), (dims{2, 3, 4, 5}));
}

} // namespace
} // namespace maskwise::bench
