// Tests Select of strings through the public API. Copying a string may throw in the middle of a
// Select.
#include "maskwise/maskwise.hpp"

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

namespace {

using namespace maskwise;
using enum data_type;
using strings = std::vector<std::string>;
constexpr std::int64_t width = sizeof(std::string);

// Every third string is long enough to be stored on the heap.
strings make_strings(const std::string& name, std::size_t count) {
    strings result;
    for (std::size_t i = 0; i < count; ++i)
        result.push_back(name + std::to_string(i) + (i % 3 == 0 ? std::string(40, '.') : ""));
    return result;
}

TEST(strings, run_backwards_and_in_place) {
    const tensor_desc backwards{string, {5}, {-width}};
    const plan select = compile(dialect::onnx_where_16, {.cond = {boolean, {5}},
                                                         .src_0 = backwards,
                                                         .src_1 = {string, {5}, {0}},
                                                         .dst = backwards});
    const bool cond[] = {true, false, true, false, true};
    strings x = make_strings("x", 5);
    const strings before = x;
    const std::string y = "y";
    select.execute({.cond = cond, .src_0 = &x[4], .src_1 = &y}, &x[4]);
    EXPECT_EQ(x, (strings{before[0], y, before[2], y, before[4]}));
}

TEST(strings, are_selected_by_many_threads) {
    constexpr std::int64_t rows = 301, columns = 107;
    constexpr std::size_t count = rows * columns;
    const plan select =
        compile(dialect::onnx_where_16, {.cond = {boolean, {rows, columns}},
                                         .src_0 = {string, {rows, columns}, {width, rows * width}},
                                         .src_1 = {string, {columns}}});
    std::vector<unsigned char> cond(count);
    for (std::size_t i = 0; i < count; ++i) cond[i] = static_cast<unsigned char>(i * i % 7 % 2);
    const strings x = make_strings("x", count), y = make_strings("y", columns);
    strings dst(count);
    select.execute({.cond = cond.data(), .src_0 = x.data(), .src_1 = y.data()}, dst.data());
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c)
            ASSERT_EQ(dst[r * columns + c], cond[r * columns + c] != 0 ? x[c * rows + r] : y[c]);
}

TEST(strings, are_old_or_new_after_a_failed_copy) {
    constexpr std::size_t count = 20000, planted = 123456;
    const tensor_desc long_desc{string, {count}};
    const plan select =
        compile(dialect::onnx_where_16,
                {.cond = {boolean, {count}}, .src_0 = long_desc, .src_1 = {string, {}}});
    const std::vector<unsigned char> cond(count, 1);
    strings x = make_strings("x", count);
    x[count / 2] = std::string(planted, '!');
    const std::string y, old = "old";
    strings dst(count, old);
    test::fail_allocations_of(planted + 1);
    EXPECT_THROW(select.execute({.cond = cond.data(), .src_0 = x.data(), .src_1 = &y}, dst.data()),
                 std::bad_alloc);
    test::fail_allocations_of(0);
    EXPECT_EQ(dst[count / 2], old);
    for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(dst[i] == x[i] || dst[i] == old) << i;
    select.execute({.cond = cond.data(), .src_0 = x.data(), .src_1 = &y}, dst.data());
    EXPECT_EQ(dst, x);
}

TEST(strings, must_be_aligned) {
    const auto compile_by = [](std::int64_t stride) {
        compile(dialect::onnx_where_16,
                {.cond = {boolean, {2}}, .src_0 = {string, {2}, {stride}}, .src_1 = {string, {}}});
    };
    for (const std::int64_t aligned : {width, -width, 2 * width, std::int64_t{0}})
        EXPECT_NO_THROW(compile_by(aligned)) << aligned;
    for (const std::int64_t odd : {width + 1, 1 - width, width + 4})
        EXPECT_THROW(compile_by(odd), argument_error) << odd;
}

TEST(strings, are_refused_with_other_types_and_by_openvino) {
    EXPECT_THROW(compile(dialect::onnx_where_16,
                         {.cond = {boolean, {2}}, .src_0 = {string, {2}}, .src_1 = {u8, {2}}}),
                 argument_error);
    EXPECT_THROW(compile(dialect::openvino_select_1,
                         {.cond = {boolean, {2}}, .src_0 = {string, {2}}, .src_1 = {string, {2}}}),
                 argument_error);
}

} // namespace
