// Passes extents and strides at the limits of 64 bits to the public API. compile must refuse a
// description, or the plan must have correct sizes and access only the described memory. Sanitizers
// report errors that a comparison would miss.
#include "maskwise/attention.hpp"
#include "maskwise/maskwise.hpp"
#include "support/huge_sizes.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace maskwise {
namespace {

using namespace test;

reach reach_of(const tensor_desc& desc) {
    return {desc.extents, desc.strides_bytes, width_bytes(desc.type)};
}

// An operand that broadcasts to `to`, with random strides or without strides.
tensor_desc operand_of(chance& random, data_type type, const dims& to) {
    tensor_desc operand{type, {}, {}};
    const int missing = to.empty() ? 0 : random.below(3) == 0 ? random.below(to.rank()) : 0;
    for (int d = missing; d < to.rank(); ++d) {
        const std::int64_t extent = random.one_in(5) ? 1 : to[d];
        operand.extents.push_back(extent);
        operand.strides_bytes.push_back(
            random.stride(extent, static_cast<std::int64_t>(width_bytes(type))));
    }
    if (random.one_in(10)) operand.strides_bytes = {};
    return operand;
}

dims random_shape(chance& random, int rank) {
    dims shape;
    for (int d = 0; d < rank; ++d) shape.push_back(random.extent());
    return shape;
}

// Returns the operand with the strides that compile fills in; nullopt if compile must refuse it.
std::optional<tensor_desc> completed(tensor_desc operand) {
    for (const std::int64_t extent : operand.extents)
        if (extent < 0) return std::nullopt;
    if (!operand.strides_bytes.empty() || operand.extents.empty()) return operand;
    auto stride = static_cast<std::int64_t>(width_bytes(operand.type));
    operand.strides_bytes = operand.extents;
    for (int d = operand.extents.rank() - 1; d >= 0; --d) {
        operand.strides_bytes[d] = stride;
        if (__builtin_mul_overflow(stride, std::max<std::int64_t>(1, operand.extents[d]), &stride))
            return std::nullopt;
    }
    return operand;
}

void expect_addressable(const tensor_desc& desc, const std::string& plan) {
    const auto operand = completed(desc);
    ASSERT_TRUE(operand) << to_string(desc.extents) << " was accepted: " << plan;
    EXPECT_TRUE(reach_of(*operand).is_addressable())
        << to_string(operand->extents) << " strides " << to_string(operand->strides_bytes)
        << " was accepted: " << plan;
}

struct counts {
    int refused = 0, accepted = 0, executed = 0;
};

void execute_select(const plan& select, const std::array<tensor_desc, 3>& inputs, counts& seen) {
    if (elements_of(select.dst().extents) > longest_memory) return;
    std::array<std::optional<exact_memory>, 4> memories;
    for (std::size_t i = 0; i < 3; ++i)
        memories[i] = exact_memory::make(reach_of(*completed(inputs[i])));
    memories[3] = exact_memory::make(reach_of(select.dst()));
    for (const auto& each : memories)
        if (!each) return;
    select.execute({.cond = memories[0]->first(),
                    .src_0 = memories[1]->first(),
                    .src_1 = memories[2]->first()},
                   memories[3]->first());
    ++seen.executed;
}

void try_select(chance& random, dialect form, counts& seen) {
    const dims shape = random_shape(random, random.below(5));
    const std::array inputs{operand_of(random, data_type::boolean, shape),
                            operand_of(random, data_type::f32, shape),
                            operand_of(random, data_type::f32, shape)};
    select_desc desc{.cond = inputs[0],
                     .src_0 = inputs[1],
                     .src_1 = inputs[2],
                     .dst = operand_of(random, data_type::f32, shape)};
    if (random.one_in(2)) desc.dst = {};
    try {
        const plan select = compile(form, desc);
        ++seen.accepted;
        for (const tensor_desc& input : inputs) expect_addressable(input, to_string(select));
        expect_addressable(select.dst(), to_string(select));
        EXPECT_FALSE(explain(select).empty());
        execute_select(select, inputs, seen);
    } catch (const error& refused) {
        ++seen.refused;
        EXPECT_TRUE(has(refused.what(), {"{"}));
    }
}

class huge_select : public testing::TestWithParam<dialect> {};

TEST_P(huge_select, is_refused_or_has_correct_sizes) {
    chance random(1);
    counts seen;
    for (int i = 0; i < 20'000 && !HasFailure(); ++i) try_select(random, GetParam(), seen);
    EXPECT_GT(seen.refused, 1000);
    EXPECT_GT(seen.accepted, 1000);
    EXPECT_GT(seen.executed, 500);
}

INSTANTIATE_TEST_SUITE_P(each, huge_select,
                         testing::Values(dialect::onednn_select, dialect::openvino_select_1,
                                         dialect::onnx_where_9, dialect::onnx_where_16));

attention_desc random_attention(chance& random) {
    const dims outer = random_shape(random, random.below(3));
    const std::int64_t rows = random.extent(), keys = random.extent(), depth = random.extent(),
                       columns = random.extent();
    const auto with = [&](std::int64_t m, std::int64_t n, data_type type) {
        dims shape = outer;
        shape.push_back(m);
        shape.push_back(n);
        tensor_desc result{type, shape, {}};
        for (const std::int64_t extent : shape)
            result.strides_bytes.push_back(
                random.stride(extent, static_cast<std::int64_t>(width_bytes(type))));
        return result;
    };
    attention_desc desc;
    desc.query = with(rows, depth, data_type::f32);
    desc.key = with(keys, depth, data_type::f32);
    desc.value = with(keys, columns, data_type::f32);
    if (random.one_in(3)) desc.cond = with(rows, keys, data_type::boolean);
    if (random.one_in(3)) desc.bias = with(rows, keys, data_type::f32);
    if (random.one_in(3)) desc.fill = -3;
    if (random.one_in(3)) desc.order = attention_order::operators;
    if (random.one_in(4)) desc.dst = with(rows, columns, data_type::f32);
    if (random.one_in(4)) {
        desc.statistics = {data_type::f32, outer};
        desc.statistics.extents.push_back(rows);
    }
    return desc;
}

// An upper bound on the number of products.
wide products_of(const attention_desc& desc, const dims& dst) {
    const auto from_end = [](const dims& extents, int back) {
        return static_cast<wide>(extents[extents.rank() - back]);
    };
    return elements_of({dst.begin(), dst.end() - 1}) * from_end(desc.key.extents, 2) *
           (1 + from_end(desc.query.extents, 1) + from_end(dst, 1));
}

void execute_attention(chance& random, const attention_plan& plan, const attention_desc& desc,
                       counts& seen) {
    if (products_of(desc, plan.dst().extents) > longest_memory) return;
    std::vector<exact_memory> memories;
    const tensor_desc* operands[] = {&desc.query, &desc.key,   &desc.value,     &desc.cond,
                                     &desc.bias,  &plan.dst(), &desc.statistics};
    std::array<void*, std::size(operands)> addresses{};
    memories.reserve(addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        if (operands[i]->type == data_type::undef) continue;
        auto memory = exact_memory::make(reach_of(*completed(*operands[i])));
        if (!memory) return;
        memories.push_back(std::move(*memory));
        addresses[i] = memories.back().first();
    }
    const parallel_loop loop{random.one_in(2) ? 1 : 7, [](std::int64_t count, const auto& body) {
                                 for (std::int64_t i = 0; i < count; ++i) body(i);
                             }};
    const std::int64_t bytes = plan.scratch_bytes(loop.threads);
    const attention_operands where{addresses[0], addresses[1], addresses[2], addresses[3],
                                   addresses[4], addresses[5], addresses[6]};
    const bool writes = elements_of(plan.dst().extents) != 0 ||
                        (addresses[6] != nullptr && elements_of(desc.statistics.extents) != 0);
    if (writes && plan.scratch_bytes(1) >= power(47)) // more than a process can address
        EXPECT_THROW(plan.execute(where, loop), std::bad_alloc) << to_string(plan);
    else if (!writes || bytes < power(26))
        plan.execute(where, loop);
    else
        return;
    ++seen.executed;
}

void try_attention(chance& random, counts& seen) {
    const attention_desc desc = random_attention(random);
    try {
        const attention_plan plan = compile(desc);
        ++seen.accepted;
        for (const tensor_desc* operand : {&desc.query, &desc.key, &desc.value})
            expect_addressable(*operand, to_string(plan));
        expect_addressable(plan.dst(), to_string(plan));
        EXPECT_FALSE(explain(plan).empty());
        // Each worker's scratch holds at least one query row and one dst row.
        const dims& dst = plan.dst().extents;
        const wide row_bytes =
            4 * (static_cast<wide>(desc.query.extents[desc.query.extents.rank() - 1]) +
                 static_cast<wide>(dst[dst.rank() - 1]));
        for (const int threads : {1, 64, std::numeric_limits<int>::max()})
            EXPECT_GE(static_cast<wide>(plan.scratch_bytes(threads)), row_bytes) << to_string(plan);
        execute_attention(random, plan, desc, seen);
    } catch (const error& refused) {
        ++seen.refused;
        EXPECT_TRUE(has(refused.what(), {"{"}));
    }
}

TEST(huge_attention, is_refused_or_has_correct_sizes) {
    chance random(2);
    counts seen;
    for (int i = 0; i < 60'000 && !HasFailure(); ++i) try_attention(random, seen);
    EXPECT_GT(seen.refused, 1000);
    EXPECT_GT(seen.accepted, 1000);
    EXPECT_GT(seen.executed, 500);
}

attention_desc of_depth(std::int64_t depth) {
    attention_desc desc;
    desc.query = {data_type::f32, {1, depth}, {0, 0}};
    desc.key = {data_type::f32, {3, depth}, {0, 0}};
    desc.value = {data_type::f32, {3, 4}};
    return desc;
}

// A query tile has 64 rows, so its size in bytes may overflow 64 bits.
TEST(huge_attention, names_the_depth_that_is_too_large) {
    for (int exponent = 49; exponent < 63; ++exponent)
        EXPECT_TRUE(has(refusal<shape_error>([&] { compile(of_depth(power(exponent))); }),
                        {std::to_string(power(exponent))}));
}

TEST(huge_attention, saturates_the_scratch_of_many_workers) {
    attention_desc desc = of_depth(power(26));
    // Heads share the keys, so a tile has rows of several heads.
    desc.query = {data_type::f32, {power(31), 2, power(26)}, {4, 0, 0}};
    EXPECT_EQ(compile(desc).scratch_bytes(std::numeric_limits<int>::max()),
              std::numeric_limits<std::int64_t>::max());
}

TEST(huge_attention, without_memory_writes_nothing) {
    const attention_plan plan = compile(of_depth(power(48)));
    EXPECT_GT(plan.scratch_bytes(1), power(48));
    EXPECT_EQ(plan.scratch_bytes(std::numeric_limits<int>::max()) >= plan.scratch_bytes(1), true);
    const float one = 1, values[12] = {};
    float dst[4] = {5, 6, 7, 8};
    EXPECT_THROW(plan.execute({.query = &one, .key = &one, .value = values, .dst = dst}),
                 std::bad_alloc);
    EXPECT_EQ(dst[0], 5);
}

} // namespace
} // namespace maskwise
