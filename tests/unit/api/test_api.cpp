// Tests the C++ API through its public headers only.
#include "maskwise/maskwise.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace maskwise;
using enum data_type;

template <class Error>
void expect_refusal(const std::vector<std::string>& parts, const auto& call) {
    EXPECT_TRUE(test::has(test::refusal<Error>(call), parts));
}

TEST(api, plans_are_values) {
    const tensor_desc cond{boolean, {3}}, source{i64, {3}};
    const plan first =
        compile(dialect::onnx_where_9, {.cond = cond, .src_0 = source, .src_1 = source});
    plan copy = first;
    const plan moved = std::move(copy);
    const bool mask[] = {true, false, true};
    const std::int64_t src_0[] = {1, 2, 3}, src_1[] = {-1, -2, -3};
    std::int64_t dst[3] = {};
    moved.execute({.cond = mask, .src_0 = src_0, .src_1 = src_1}, dst);
    EXPECT_EQ(dst[0], 1);
    EXPECT_EQ(dst[1], -2);
    EXPECT_EQ(to_string(first), to_string(moved));
    EXPECT_EQ(to_string(copy), to_string(moved)); // a moved-from plan is unchanged
}

TEST(api, dst_is_laid_out_by_the_caller) {
    const tensor_desc source{u16, {2, 3}};
    const tensor_desc columns_first{u16, {2, 3}, {2, 4}};
    const plan select =
        compile(dialect::openvino_select_1,
                {.cond = {boolean, {}}, .src_0 = source, .src_1 = source, .dst = columns_first});
    EXPECT_EQ(select.dst(), columns_first);
    const std::uint16_t src_0[] = {1, 2, 3, 4, 5, 6}, src_1[6] = {};
    const bool cond = true;
    std::vector<std::uint16_t> dst(6);
    select.execute({.cond = &cond, .src_0 = src_0, .src_1 = src_1}, dst.data());
    EXPECT_EQ(dst, (std::vector<std::uint16_t>{1, 4, 2, 5, 3, 6}));
}

TEST(api, refusals_have_their_exception_classes) {
    const tensor_desc cond{boolean, {3}}, source{f32, {3}};
    expect_refusal<argument_error>({"onednn::Select", "src_0", "f64"}, [&] {
        compile(dialect::onednn_select, {.cond = cond, .src_0 = {f64, {3}}, .src_1 = {f64, {3}}});
    });
    expect_refusal<argument_error>({"onnx::Where-9", "auto_broadcast"}, [&] {
        compile(dialect::onnx_where_9, {.cond = cond, .src_0 = source, .src_1 = source},
                auto_broadcast::none);
    });
    expect_refusal<shape_error>({"{4}", "{3}"}, [&] {
        compile(dialect::onnx_where_16, {.cond = {boolean, {4}}, .src_0 = source, .src_1 = source});
    });
    expect_refusal<shape_error>({"onnx::Where-16", "output", "{3,1}", "{3}"}, [&] {
        compile(dialect::onnx_where_16,
                {.cond = cond, .src_0 = source, .src_1 = source, .dst = {f32, {3, 1}}});
    });
    expect_refusal<argument_error>({"dialect 77", "unknown"}, [&] {
        compile(static_cast<dialect>(77), {.cond = cond, .src_0 = source, .src_1 = source});
    });
}

TEST(api, names_the_null_address) {
    const plan select = compile(dialect::onnx_where_16, {.cond = {boolean, {1}},
                                                         .src_0 = {f32, {2}},
                                                         .src_1 = {f32, {3, 1}},
                                                         .dst = {f32, {3, 2}}});
    constexpr const char *names[] = {"cond", "src_0", "src_1", "dst"},
                         *shapes[] = {"{1}", "{2}", "{3,1}", "{3,2}"};
    for (std::size_t null = 0; null < 4; ++null) {
        float memory[6];
        void* pointers[4] = {memory, memory, memory, memory};
        pointers[null] = nullptr;
        expect_refusal<argument_error>(
            {std::string("the address of ") + names[null] + " is null", shapes[null]}, [&] {
                select.execute({.cond = pointers[0], .src_0 = pointers[1], .src_1 = pointers[2]},
                               pointers[3]);
            });
    }
}

TEST(api, runs_on_the_callers_loop) {
    constexpr std::int64_t count = 1 << 20;
    const tensor_desc values{u16, {count}};
    const plan select = compile(dialect::onnx_where_16,
                                {.cond = {boolean, {}}, .src_0 = values, .src_1 = {u16, {}}});
    const std::vector<std::uint16_t> src_0(count, 7);
    std::vector<std::uint16_t> dst(count);
    const bool cond = true;
    std::int64_t calls = 0;
    const parallel_loop loop{2, [&](std::int64_t parts, const auto& body) {
                                 for (std::int64_t i = 0; i < parts; ++i, ++calls) body(i);
                             }};
    select.execute({.cond = &cond, .src_0 = src_0.data(), .src_1 = src_0.data()}, dst.data(), loop);
    EXPECT_GT(calls, 1);
    EXPECT_EQ(dst, src_0);
    expect_refusal<argument_error>({"select", "0 threads without a function"}, [&] {
        select.execute({.cond = &cond, .src_0 = src_0.data(), .src_1 = src_0.data()}, dst.data(),
                       parallel_loop{0, {}});
    });
    expect_refusal<error>({"no thread left"}, [&] {
        const auto fails = [](std::int64_t, const auto&) { throw error("no thread left"); };
        select.execute({.cond = &cond, .src_0 = src_0.data(), .src_1 = src_0.data()}, dst.data(),
                       parallel_loop{2, fails});
    });
}

TEST(api, dims_have_at_most_64_extents_like_numpy) {
    dims shape = dims::filled(max_rank, 1);
    EXPECT_EQ(shape.rank(), 64);
    EXPECT_THROW(shape.push_back(1), shape_error);
    EXPECT_THROW(dims(std::span<const std::int64_t>(std::vector<std::int64_t>(65, 1))),
                 shape_error);
}

TEST(api, explains_its_plans) {
    const tensor_desc cond{boolean, {4, 1}}, transposed{u16, {4, 256}, {2, 8}}, value{u16, {}};
    const plan select =
        compile(dialect::onnx_where_16, {.cond = cond, .src_0 = transposed, .src_1 = value});
    const std::string line = to_string(select), text = explain(select);
    EXPECT_TRUE(test::has(line, {"kernel=select_x16"}));
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_TRUE(test::has(
        text, {"cond boolean {4,1}", "src_0 u16 {4,256}, strides in bytes {2,8}: transposed",
               "src_1 u16 {}", "dst u16 {4,256}, strides in bytes {512,2}: written in place",
               "select_x16", "caller's thread"}));
    const tensor_desc mask{boolean, {40, 300}}, spaced{complex128, {40, 300}, {600 * 16, 2 * 16}};
    const std::string picked =
        explain(compile(dialect::onnx_where_16, {.cond = mask, .src_0 = spaced, .src_1 = spaced}));
    for (const std::string name : {"src_0", "src_1"})
        EXPECT_TRUE(test::has(picked, {name + " complex128 {40,300}, strides in bytes {9600,32}: "
                                              "picked in place; if a tile"}));
    EXPECT_EQ(picked.find("picked in place", picked.find("dst")), std::string::npos) << picked;
    const std::string empty = explain(
        compile(dialect::onnx_where_9, {.cond = cond, .src_0 = {u16, {4, 0}}, .src_1 = value}));
    EXPECT_TRUE(test::has(empty, {"{4,0} is empty"}));
}

// A process reads the verbose level once, and GoogleTest runs suites named *_DeathTest first. The
// child is forked because an emulator cannot restart the program.
TEST(api_DeathTest, writes_lines_of_plans_and_executions_on_demand) {
    const auto run = [] {
        setenv("MASKWISE_VERBOSE", "2", 1);
        const bool cond[] = {true, false};
        const float src_0[] = {1, 2}, src_1[] = {3, 4};
        float dst[2] = {};
        const tensor_desc values{f32, {2}};
        compile(dialect::onednn_select, {.cond = {boolean, {2}}, .src_0 = values, .src_1 = values})
            .execute({.cond = cond, .src_0 = src_0, .src_1 = src_1}, dst);
        std::exit(dst[0] == 1 && dst[1] == 4 ? 0 : 1);
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(0),
                "maskwise,plan,nest=2 [^\n]*\n"
                "maskwise,exec,nest=2 [^\n]*kernel=select_x32_uuu_plain isa=[^\n]*,[^\n]* ms\n");
}

} // namespace
