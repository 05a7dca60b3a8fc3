// Tests each dialect's specification through the public API: types, broadcasting, attribute, texts.
#include "maskwise/maskwise.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace {

using namespace maskwise;
using test::refusal;
using enum data_type;

constexpr data_type every_type[] = {boolean, i8,  u8,  i16, u16, f16,       bf16,       i32,
                                    u32,     f32, i64, u64, f64, complex64, complex128, string};

// A dialect's name, input names and source types.
struct definition {
    dialect form;
    std::string name;
    std::vector<std::string> inputs;
    std::set<data_type> types;

    friend void PrintTo(const definition& printed, std::ostream* out) { *out << printed.name; }
};

const std::set<data_type> onnx_9_types{boolean, i8,  u8,  i16, u16,       f16,        i32,   u32,
                                       f32,     i64, u64, f64, complex64, complex128, string};

std::set<data_type> with_bf16(std::set<data_type> types) {
    types.insert(bf16);
    return types;
}

const definition definitions[] = {
    {dialect::onednn_select, "onednn::Select", {"cond", "src_0", "src_1"}, {f32, bf16, f16}},
    {dialect::openvino_select_1,
     "openvino::Select-1",
     {"cond", "then", "else"},
     {boolean, i8, u8, i16, u16, f16, bf16, i32, u32, f32, i64, u64, f64}},
    {dialect::onnx_where_9, "onnx::Where-9", {"condition", "X", "Y"}, onnx_9_types},
    {dialect::onnx_where_16, "onnx::Where-16", {"condition", "X", "Y"}, with_bf16(onnx_9_types)},
};

void expect_names(const std::string& text, const std::vector<std::string>& parts) {
    EXPECT_TRUE(test::has(text, parts));
}

class dialects : public testing::TestWithParam<definition> {};

TEST_P(dialects, have_their_names) {
    EXPECT_EQ(to_string(GetParam().form), GetParam().name);
}

TEST_P(dialects, accept_exactly_their_types) {
    for (const data_type type : every_type) {
        const auto select = [&] {
            return compile(GetParam().form,
                           {.cond = {boolean, {2}}, .src_0 = {type, {2}}, .src_1 = {type, {2}}})
                .dst()
                .type;
        };
        if (GetParam().types.contains(type)) {
            EXPECT_EQ(select(), type) << to_string(type);
        } else {
            expect_names(refusal<argument_error>(select),
                         {GetParam().name, GetParam().inputs[1], std::string(to_string(type)),
                          "expected", "f32"});
        }
    }
}

TEST_P(dialects, accept_only_a_boolean_condition) {
    for (const data_type type : every_type) {
        const std::string text = refusal<argument_error>([&] {
            compile(GetParam().form,
                    {.cond = {type, {2}}, .src_0 = {f32, {2}}, .src_1 = {f32, {2}}});
        });
        if (type == boolean)
            EXPECT_EQ(text, "");
        else
            expect_names(text, {GetParam().name, GetParam().inputs[0], std::string(to_string(type)),
                                "expected boolean"});
    }
}

TEST_P(dialects, need_one_type_for_sources_and_dst) {
    const tensor_desc cond{boolean, {2}}, a{f32, {2}}, b{f16, {2}};
    expect_names(refusal<argument_error>(
                     [&] { compile(GetParam().form, {.cond = cond, .src_0 = a, .src_1 = b}); }),
                 {GetParam().name, GetParam().inputs[2], "f16", "expected f32"});
    expect_names(refusal<argument_error>([&] {
                     compile(GetParam().form, {.cond = cond, .src_0 = a, .src_1 = a, .dst = b});
                 }),
                 {GetParam().name, "f16", "expected f32"});
}

TEST_P(dialects, refuse_an_unknown_data_type) {
    const tensor_desc cond{boolean, {2}}, none{undef, {2}};
    EXPECT_THROW(compile(GetParam().form, {.cond = cond, .src_0 = none, .src_1 = none}),
                 argument_error);
}

// An empty result reads and writes nothing, so addresses may be null.
TEST_P(dialects, select_nothing_from_empty_tensors) {
    const plan empty =
        compile(GetParam().form,
                {.cond = {boolean, {3, 1}}, .src_0 = {f32, {1, 0}}, .src_1 = {f32, {3, 1}}});
    EXPECT_EQ(empty.dst().extents, (dims{3, 0}));
    EXPECT_NO_THROW(empty.execute({.cond = nullptr, .src_0 = nullptr, .src_1 = nullptr}, nullptr));
}

TEST_P(dialects, accept_scalars) {
    const plan select =
        compile(GetParam().form, {.cond = {boolean, {}}, .src_0 = {f32, {}}, .src_1 = {f32, {}}});
    EXPECT_EQ(select.dst().extents, (dims{}));
    const float src_0 = 1, src_1 = 2;
    for (const bool cond : {false, true}) {
        float dst = 0;
        select.execute({.cond = &cond, .src_0 = &src_0, .src_1 = &src_1}, &dst);
        EXPECT_EQ(dst, cond ? 1 : 2);
    }
}

INSTANTIATE_TEST_SUITE_P(specification, dialects, testing::ValuesIn(definitions),
                         [](const auto& parameter) {
                             std::string name = parameter.param.name;
                             for (char& c : name)
                                 if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                             return name;
                         });

tensor_desc desc(data_type type, const dims& extents) {
    return {type, extents};
}

dims infer(dialect form, const dims& cond, const dims& src_0, const dims& src_1,
           auto_broadcast broadcast = auto_broadcast::numpy) {
    return infer_dst(
               form,
               {.cond = desc(boolean, cond), .src_0 = desc(f32, src_0), .src_1 = desc(f32, src_1)},
               broadcast)
        .extents;
}

template <class T>
std::vector<T> run(const plan& select, const std::vector<unsigned char>& cond,
                   const std::vector<T>& src_0, const std::vector<T>& src_1) {
    std::vector<T> dst(cond.size());
    select.execute({.cond = cond.data(), .src_0 = src_0.data(), .src_1 = src_1.data()}, dst.data());
    return dst;
}

TEST(openvino_select_1, gives_the_result_of_its_specification) {
    const plan select = compile(
        dialect::openvino_select_1,
        {.cond = desc(boolean, {3, 2}), .src_0 = desc(i32, {3, 2}), .src_1 = desc(i32, {3, 2})});
    EXPECT_EQ(
        run<std::int32_t>(select, {0, 0, 1, 0, 1, 1}, {-1, 0, 1, 2, 3, 4}, {11, 10, 9, 8, 7, 6}),
        (std::vector<std::int32_t>{11, 10, 1, 8, 3, 4}));
}

// These dialects broadcast the sources first, then cond to the sources' common shape.
constexpr dialect two_step_dialects[] = {dialect::onednn_select, dialect::openvino_select_1};

TEST(two_step_select, broadcasts_in_two_steps) {
    const dims four{2, 3, 4, 5};
    for (const dialect form : two_step_dialects) {
        // The first two shapes are oneDNN's examples.
        EXPECT_EQ(infer(form, {4, 5}, four, {}), four);
        EXPECT_EQ(infer(form, {3, 1, 5}, four, four), four);
        EXPECT_EQ(infer(form, {3}, {2, 1}, {3}), (dims{2, 3}));
        EXPECT_EQ(infer(form, {}, {2, 3}, {2, 3}), (dims{2, 3}));
        const auto refused = [form](const dims& cond, const dims& src_0, const dims& src_1) {
            return refusal<shape_error>([&] { infer(form, cond, src_0, src_1); });
        };
        const std::string name(to_string(form));
        expect_names(refused({3, 5}, four, four), {name, "cond", "{3,5}", "{2,3,4,5}"});
        expect_names(refused({4, 2, 3}, {2, 3}, {2, 3}), {name, "cond", "{4,2,3}", "{2,3}"});
        expect_names(refused({2, 3}, {}, {}), {name, "cond", "{2,3}", "{}"});
        expect_names(refused({2}, {2, 3}, {2, 4}), {name, "{2,3}", "{2,4}"});
    }
    EXPECT_EQ(refusal<shape_error>([&] {
                  infer(dialect::onednn_select, {3, 5}, four, {});
              }),
              "onednn::Select: cond does not broadcast to src_0 and src_1: cond is {3,5}, "
              "src_0 is {2,3,4,5}, src_1 is {}");
}

TEST(two_step_select, none_needs_equal_shapes) {
    for (const dialect form : two_step_dialects) {
        const auto with_none = [form](const dims& cond, const dims& src_0, const dims& src_1) {
            return infer(form, cond, src_0, src_1, auto_broadcast::none);
        };
        EXPECT_EQ(with_none({2, 3}, {2, 3}, {2, 3}), (dims{2, 3}));
        EXPECT_THROW(with_none({1, 3}, {2, 3}, {2, 3}), shape_error);
        EXPECT_THROW(with_none({2, 3}, {2, 3}, {}), shape_error);
        expect_names(refusal<shape_error>([&] {
                         with_none({}, {2, 3}, {2, 3});
                     }),
                     {std::string(to_string(form)), "cond is {}", "is {2,3}"});
    }
}

// Values from ONNX's node tests where_example and where_long_example.
TEST(onnx_where, gives_the_results_of_its_examples) {
    for (const dialect form : {dialect::onnx_where_9, dialect::onnx_where_16}) {
        const std::vector<unsigned char> condition{1, 0, 1, 1};
        const plan floats = compile(form, {.cond = desc(boolean, {2, 2}),
                                           .src_0 = desc(f32, {2, 2}),
                                           .src_1 = desc(f32, {2, 2})});
        EXPECT_EQ(run<float>(floats, condition, {1, 2, 3, 4}, {9, 8, 7, 6}),
                  (std::vector<float>{1, 8, 3, 4}));
        const plan longs = compile(form, {.cond = desc(boolean, {2, 2}),
                                          .src_0 = desc(i64, {2, 2}),
                                          .src_1 = desc(i64, {2, 2})});
        EXPECT_EQ(run<std::int64_t>(longs, condition, {1, 2, 3, 4}, {9, 8, 7, 6}),
                  (std::vector<std::int64_t>{1, 8, 3, 4}));
    }
}

// Shapes from ONNX's page on broadcasting, with each operand in each position.
TEST(onnx_where, broadcasts_all_three_operands) {
    const dims four{2, 3, 4, 5};
    const std::pair<dims, dims> examples[] = {{four, {}},
                                              {four, {5}},
                                              {{4, 5}, four},
                                              {{1, 4, 5}, {2, 3, 1, 1}},
                                              {{3, 4, 5}, {2, 1, 1, 1}}};
    for (const dialect form : {dialect::onnx_where_9, dialect::onnx_where_16})
        for (const auto& [a, b] : examples)
            for (const auto& [cond, src_0, src_1] :
                 {std::array{a, b, b}, {b, a, b}, {b, b, a}, {a, a, b}, {a, b, a}, {b, a, a}})
                EXPECT_EQ(infer(form, cond, src_0, src_1), four);
    expect_names(refusal<shape_error>([] { infer(dialect::onnx_where_16, {4}, {3}, {1}); }),
                 {"onnx::Where-16", "condition", "{4}", "{3}"});
}

TEST(onnx_where, lets_the_condition_expand_the_result) {
    const plan select =
        compile(dialect::onnx_where_9,
                {.cond = desc(boolean, {3}), .src_0 = desc(u8, {}), .src_1 = desc(u8, {})});
    EXPECT_EQ(run<unsigned char>(select, {1, 0, 1}, {7}, {9}),
              (std::vector<unsigned char>{7, 9, 7}));
}

TEST(onnx_where, has_no_attribute) {
    expect_names(refusal<argument_error>(
                     [] { infer(dialect::onnx_where_16, {2}, {2}, {2}, auto_broadcast::none); }),
                 {"auto_broadcast is none, expected numpy: onnx::Where-16 has no such attribute"});
}

TEST(auto_broadcast, is_numpy_by_default) {
    EXPECT_EQ(auto_broadcast(), auto_broadcast::numpy);
    for (const auto& each : definitions)
        EXPECT_EQ(infer(each.form, {}, {3}, {}, auto_broadcast()), (dims{3})) << each.name;
}

TEST(auto_broadcast, refuses_unknown_values) {
    for (const dialect form : {dialect::onednn_select, dialect::onnx_where_16})
        expect_names(refusal<argument_error>(
                         [&] { infer(form, {2}, {2}, {2}, static_cast<auto_broadcast>(7)); }),
                     {"auto_broadcast", "7"});
}

} // namespace
