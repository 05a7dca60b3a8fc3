// Tests what the public headers promise besides results: names, defaults, sizes, allocations,
// texts.
#include "maskwise/attention.hpp"

#include "support/allocations.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace maskwise;
using test::refusal;
using enum data_type;

static_assert(std::is_same_v<maskwise::plan, maskwise::v1::plan>);
static_assert(std::is_same_v<maskwise::attention_desc, maskwise::v1::attention_desc>);
static_assert(!std::is_constructible_v<dims, int, int>);
static_assert(!std::is_constructible_v<dims, int, std::int64_t>);
static_assert(std::is_nothrow_move_constructible_v<tensor_desc>);
static_assert(sizeof(attention_desc) < 2304); // nine tensors

template <class Plan>
concept takes_positions = requires(const Plan& plan, const void* in, void* out) {
    plan.execute(in, in, in, out);
};
static_assert(!takes_positions<plan>);

TEST(contract, version_of_header_build_and_library_agree) {
    const std::string header = std::to_string(MASKWISE_VERSION_MAJOR) + '.' +
                               std::to_string(MASKWISE_VERSION_MINOR) + '.' +
                               std::to_string(MASKWISE_VERSION_PATCH);
    EXPECT_EQ(header, MASKWISE_EXPECTED_VERSION);
    EXPECT_EQ(header, version());
    EXPECT_FALSE(instruction_set().empty());
}

TEST(contract, dims_are_filled_by_name) {
    EXPECT_EQ(dims::filled(3, 4), (dims{4, 4, 4}));
    EXPECT_EQ(dims::filled(0, 4), dims());
    EXPECT_EQ(refusal<shape_error>([] { dims::filled(-1, 4); }), "-1 dimensions, expected 0 to 64");
    EXPECT_EQ(refusal<shape_error>([] { dims::filled(65, 4); }), "65 dimensions, expected 0 to 64");
}

dims counting(int rank) {
    dims result;
    for (int d = 0; d < rank; ++d) result.push_back(d);
    return result;
}

// Covers all transitions between inline and heap extents.
TEST(contract, dims_are_values_of_any_rank) {
    for (const int rank : {0, 3, dims::inline_rank, dims::inline_rank + 1, max_rank})
        for (const int other : {0, 5, dims::inline_rank + 2, max_rank}) {
            const dims expected = counting(rank);
            dims copied = counting(other), moved = counting(other), source = expected;
            copied = expected;
            EXPECT_EQ(copied, expected) << rank << " over " << other;
            moved = std::move(source);
            EXPECT_EQ(moved, expected) << rank << " over " << other;
            source = expected; // NOLINT(bugprone-use-after-move): moved-from dims are assignable
            EXPECT_EQ(source, expected);
            const dims& itself = copied;
            copied = itself;
            EXPECT_EQ(copied, expected);
            EXPECT_EQ(copied.rank(), rank);
            EXPECT_EQ(dims(std::move(moved)), expected);
        }
}

TEST(contract, copies_of_few_dimensions_allocate_nothing) {
    attention_desc desc;
    desc.query = desc.key = desc.value = {f32, {2, 3, 4, 5, 6, 7, 8, 9}, {8, 7, 6, 5, 4, 3, 2, 1}};
    const dims most = dims::filled(dims::inline_rank, 1), more = dims::filled(max_rank, 1);
    const std::int64_t before = test::allocations();
    const attention_desc copy = desc;
    dims longest = most;
    longest = most;
    EXPECT_EQ(test::allocations(), before);
    longest = more;
    EXPECT_EQ(test::allocations(), before + 1);
    EXPECT_EQ(copy, desc);
}

TEST(contract, executions_of_a_select_allocate_nothing) {
    for (const int ones : {0, dims::inline_rank, max_rank - 3}) {
        dims shape = dims::filled(ones, 1);
        for (const std::int64_t extent : {4, 8, 16}) shape.push_back(extent);
        const plan select =
            compile(dialect::onnx_where_16,
                    {.cond = {boolean, {8, 1}}, .src_0 = {f32, shape}, .src_1 = {f32, {16}, {-4}}});
        const std::vector<unsigned char> cond(8, 1);
        const std::vector<float> src_0(512, 2), src_1(16);
        std::vector<float> dst(512);
        const parallel_loop loop{3, [](std::int64_t count, const auto& body) {
                                     for (std::int64_t i = 0; i < count; ++i) body(i);
                                 }};
        const select_inputs operands{
            .cond = cond.data(), .src_0 = src_0.data(), .src_1 = &src_1[15]};
        const std::int64_t before = test::allocations();
        select.execute(operands, dst.data());
        select.execute(operands, dst.data(), loop);
        EXPECT_EQ(test::allocations(), before) << ones;
        EXPECT_EQ(dst, src_0);
    }
}

// Later executions reuse the first execution's memory.
TEST(contract, further_executions_of_attention_allocate_nothing) {
    for (const int ones : {0, dims::inline_rank, max_rank - 3}) {
        dims shape = dims::filled(ones, 1);
        for (const std::int64_t extent : {2, 5, 4}) shape.push_back(extent);
        attention_desc desc;
        desc.query = desc.key = desc.value = {f32, shape};
        const attention_plan plan = compile(desc);
        const std::vector<float> ones_in(40, 1);
        std::vector<float> dst(40);
        const mask_rules causal{.causal = true};
        const attention_operands operands{.query = ones_in.data(),
                                          .key = ones_in.data(),
                                          .value = ones_in.data(),
                                          .dst = dst.data(),
                                          .rules = &causal};
        plan.execute(operands);
        const std::int64_t before = test::allocations();
        plan.execute(operands);
        EXPECT_EQ(test::allocations(), before) << ones;
        EXPECT_EQ(dst, ones_in);
    }
}

TEST(contract, infer_dst_matches_the_plan_of_attention) {
    attention_desc desc;
    desc.query = {bf16, {4, 8, 5, 16}};
    desc.key = {bf16, {2, 7, 16}};
    desc.value = {bf16, {2, 7, 3}};
    desc.grouped_queries = true;
    EXPECT_EQ(infer_dst(desc), compile(desc).dst());
    EXPECT_EQ(infer_dst(desc), (tensor_desc{bf16, {4, 8, 5, 3}, {240, 30, 6, 2}}));
    desc.dst = {f32, {4, 8, 5, 3}, {12, 48, 384, 4}};
    EXPECT_EQ(infer_dst(desc), desc.dst);
    desc.value.extents = {2, 6, 3};
    EXPECT_EQ(refusal<shape_error>([&] { infer_dst(desc); }),
              refusal<shape_error>([&] { compile(desc); }));
}

TEST(contract, a_negative_extent_is_named_with_its_position) {
    const tensor_desc good{f32, {2, 3}}, bad{f32, {2, -3}}, cond{boolean, {2, 3}};
    const auto compiled = [](const select_desc& desc) {
        return refusal<shape_error>([&] { compile(dialect::onnx_where_16, desc); });
    };
    EXPECT_EQ(compiled({.cond = {boolean, {-1}}, .src_0 = good, .src_1 = good}),
              "onnx::Where-16: condition {-1}: extent -1 at position 0 is negative");
    EXPECT_EQ(compiled({.cond = cond, .src_0 = bad, .src_1 = good}),
              "onnx::Where-16: X {2,-3}: extent -3 at position 1 is negative");
    EXPECT_EQ(compiled({.cond = cond, .src_0 = good, .src_1 = bad}),
              "onnx::Where-16: Y {2,-3}: extent -3 at position 1 is negative");
    attention_desc desc;
    desc.query = desc.key = desc.value = good;
    desc.key = bad;
    EXPECT_EQ(refusal<shape_error>([&] { compile(desc); }),
              "attention: key {2,-3}: extent -3 at position 1 is negative");
}

// torch's scaled_dot_product_attention and Python's maskwise.attention have the same default.
TEST(contract, a_fully_masked_row_is_zero_by_default) {
    attention_desc desc;
    desc.query = desc.key = desc.value = {f32, {2, 1}};
    desc.cond = {boolean, {2, 2}};
    const float ones[] = {1, 1};
    const bool unmasked[] = {false, false, true, true};
    float dst[] = {5, 5};
    const attention_operands operands{
        .query = ones, .key = ones, .value = ones, .cond = unmasked, .dst = dst};
    compile(desc).execute(operands);
    EXPECT_EQ(dst[0], 0);
    EXPECT_EQ(dst[1], 1);
    desc.inf_as_zero = false;
    compile(desc).execute(operands);
    EXPECT_TRUE(std::isnan(dst[0]));
    EXPECT_EQ(dst[1], 1);
}

} // namespace
