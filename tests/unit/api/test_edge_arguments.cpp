// Tests null addresses, negative extents, and huge extents next to zeros for Select, attention and
// mask rules. Each call must throw the documented error or return at once. A loop over 2^50
// elements would never end.
#include "maskwise/attention.hpp"
#include "maskwise/maskwise.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace maskwise {
namespace {

using test::has;
using test::refusal;

constexpr std::int64_t huge = std::int64_t{1} << 50;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

// A tensor with strides of 0: every index addresses the first element.
tensor_desc repeated(data_type type, const dims& extents) {
    return {type, extents, dims::filled(extents.rank(), 0)};
}

// Calls visit for each combination of `Count` extents out of 0, 2 and 2^50.
template <std::size_t Count, class Visit>
void for_each_choice(Visit visit) {
    constexpr std::array<std::int64_t, 3> extents{0, 2, huge};
    std::array<std::int64_t, Count> chosen{};
    const auto combinations = static_cast<int>(std::pow(3, Count));
    for (int number = 0; number < combinations; ++number) {
        int rest = number;
        for (auto& extent : chosen) {
            extent = extents[static_cast<std::size_t>(rest % 3)];
            rest /= 3;
        }
        visit(chosen);
    }
}

bool has_zero(const dims& extents) {
    return std::ranges::count(extents, 0) > 0;
}

const parallel_loop loop{3, [](std::int64_t count, const auto& body) {
                             for (std::int64_t i = 0; i < count; ++i) body(i);
                         }};

TEST(edge_arguments, a_select_names_a_negative_extent_of_each_operand) {
    const tensor_desc good{data_type::f32, {2, 3}};
    for (const std::int64_t extent : {std::int64_t{-1}, least})
        for (tensor_desc select_desc::*operand :
             {&select_desc::cond, &select_desc::src_0, &select_desc::src_1, &select_desc::dst}) {
            select_desc desc{
                .cond = {data_type::boolean, {2, 3}}, .src_0 = good, .src_1 = good, .dst = good};
            (desc.*operand).extents = {2, extent};
            for (const auto form : {dialect::onednn_select, dialect::onnx_where_16}) {
                EXPECT_TRUE(has(refusal<shape_error>([&] { compile(form, desc); }),
                                {std::to_string(extent)}));
                EXPECT_TRUE(has(refusal<shape_error>([&] { infer_dst(form, desc); }),
                                {std::to_string(extent)}));
            }
        }
}

struct attention_extents {
    std::int64_t batch, heads, rows, keys, depth, columns;
};

attention_desc repeated_attention(const attention_extents& extents) {
    attention_desc desc;
    desc.query =
        repeated(data_type::f32, {extents.batch, extents.heads, extents.rows, extents.depth});
    desc.key =
        repeated(data_type::f32, {extents.batch, extents.heads, extents.keys, extents.depth});
    desc.value =
        repeated(data_type::f32, {extents.batch, extents.heads, extents.keys, extents.columns});
    return desc;
}

std::vector<attention_desc> variants_of(const attention_desc& plain,
                                        const attention_extents& extents) {
    std::vector<attention_desc> variants(5, plain);
    const dims scores{extents.batch, extents.heads, extents.rows, extents.keys};
    variants[1].cond = repeated(data_type::boolean, scores);
    variants[2].bias = repeated(data_type::f32, scores);
    variants[3].order = attention_order::operators;
    variants[4].sinks = repeated(data_type::f32, {extents.batch, extents.heads});
    return variants;
}

attention_operands inputs_at(const float* numbers) {
    return {.query = numbers,
            .key = numbers,
            .value = numbers,
            .cond = numbers,
            .bias = numbers,
            .sinks = numbers};
}

TEST(edge_arguments, an_attention_without_results_returns_at_once) {
    int executed = 0;
    const float one[1] = {};
    const mask_rules rules{.causal = true, .lengths = {3}};
    for_each_choice<6>([&](const auto& e) {
        const attention_extents extents{e[0], e[1], e[2], e[3], e[4], e[5]};
        if (!has_zero({extents.batch, extents.heads, extents.rows, extents.columns})) return;
        for (const attention_desc& desc : variants_of(repeated_attention(extents), extents)) {
            try {
                const attention_plan empty = compile(desc);
                EXPECT_EQ(infer_dst(desc), empty.dst());
                for (const mask_rules* each_rules : {static_cast<const mask_rules*>(nullptr),
                                                     static_cast<const mask_rules*>(&rules)}) {
                    attention_operands operands = inputs_at(one);
                    operands.rules = each_rules;
                    empty.execute(operands);
                    empty.execute(operands, loop);
                    EXPECT_EQ(empty.count_tiles(operands).all, 0);
                }
                EXPECT_GT(empty.scratch_bytes(1), 0);
                EXPECT_FALSE(to_string(empty).empty() || explain(empty).empty());
                ++executed;
            } catch (
                const shape_error& refused) { // more than 2^60 products or 2^48 elements per row
                EXPECT_TRUE(has(refused.what(), {"{"}));
            }
        }
    });
    EXPECT_GT(executed, 500);
}

TEST(edge_arguments, an_attention_names_a_negative_extent_of_each_operand) {
    using member = tensor_desc attention_desc::*;
    const std::array<member, 8> operands{&attention_desc::query, &attention_desc::key,
                                         &attention_desc::value, &attention_desc::cond,
                                         &attention_desc::bias,  &attention_desc::sinks,
                                         &attention_desc::dst,   &attention_desc::statistics};
    for (const std::int64_t extent : {std::int64_t{-1}, least})
        for (const member operand : operands) {
            attention_desc desc;
            desc.query = desc.key = desc.value = desc.dst = {data_type::f32, {2, 3, 4}};
            desc.cond = {data_type::boolean, {3, 3}};
            desc.bias = {data_type::f32, {3, 3}};
            desc.sinks = {data_type::f32, {2}};
            desc.statistics = {data_type::f32, {2, 3}};
            compile(desc);
            (desc.*operand).extents[0] = extent;
            EXPECT_TRUE(has(refusal<shape_error>([&] { compile(desc); }), //
                            {std::to_string(extent)}));
            EXPECT_TRUE(
                has(refusal<shape_error>([&] { infer_dst(desc); }), {std::to_string(extent)}));
        }
}

// execute names every null address. count_tiles names only null inputs. No call writes an output.
TEST(edge_arguments, an_attention_names_each_null_address) {
    attention_desc desc;
    desc.query = desc.key = desc.value = {data_type::f32, {2, 1, 4}};
    desc.cond = {data_type::boolean, {2, 1, 1}};
    desc.bias = {data_type::f32, {2, 1, 1}};
    desc.sinks = {data_type::f32, {2}};
    desc.statistics = {data_type::f32, {2, 1}};
    const attention_plan plan = compile(desc);
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float dst[8] = {5}, statistics[2] = {6};
    attention_operands complete = inputs_at(ones);
    complete.dst = dst;
    complete.statistics = statistics;
    const auto expect_named = [&](const attention_operands& operands, const char* name,
                                  bool is_input) {
        const std::string text = std::string("the address of ") + name + " is null";
        EXPECT_TRUE(has(refusal<argument_error>([&] { plan.execute(operands); }), {text.c_str()}));
        EXPECT_TRUE(
            has(refusal<argument_error>([&] { plan.execute(operands, loop); }), {text.c_str()}));
        if (is_input)
            EXPECT_TRUE(
                has(refusal<argument_error>([&] { plan.count_tiles(operands); }), {text.c_str()}));
        else
            EXPECT_EQ(plan.count_tiles(operands).all, 2);
    };
    const std::pair<const void * attention_operands::*, const char*> inputs[] = {
        {&attention_operands::query, "query"}, {&attention_operands::key, "key"},
        {&attention_operands::value, "value"}, {&attention_operands::cond, "cond"},
        {&attention_operands::bias, "bias"},   {&attention_operands::sinks, "sinks"}};
    for (const auto& [operand, name] : inputs) {
        attention_operands operands = complete;
        operands.*operand = nullptr;
        expect_named(operands, name, true);
    }
    const std::pair<void * attention_operands::*, const char*> outputs[] = {
        {&attention_operands::dst, "dst"}, {&attention_operands::statistics, "statistics"}};
    for (const auto& [operand, name] : outputs) {
        attention_operands operands = complete;
        operands.*operand = nullptr;
        expect_named(operands, name, false);
    }
    EXPECT_EQ(dst[0], 5);
    EXPECT_EQ(statistics[0], 6);
}

TEST(edge_arguments, a_loop_without_threads_or_function_is_refused) {
    const plan select = compile(dialect::onnx_where_16, {.cond = {data_type::boolean, {0}},
                                                         .src_0 = {data_type::f32, {0}},
                                                         .src_1 = {data_type::f32, {0}}});
    const attention_plan attention = compile(repeated_attention({0, 1, 1, 1, 1, 1}));
    for (const parallel_loop& bad : {parallel_loop{1, {}}, parallel_loop{0, loop.run},
                                     parallel_loop{std::numeric_limits<int>::min(), loop.run}}) {
        EXPECT_THROW(select.execute({}, nullptr, bad), argument_error);
        EXPECT_THROW(attention.execute({}, bad), argument_error);
    }
    EXPECT_GE(attention.scratch_bytes(std::numeric_limits<int>::min()), 0);
}

std::string refused_mask(const mask_rules& rules, std::int64_t rows, std::int64_t keys,
                         std::byte* to) {
    return refusal<argument_error>([&] { write_mask(rules, 1, 0, rows, keys, to); });
}

const mask_rules each_rule[] = {
    {},
    {.causal = true},
    {.from_end = true, .causal = true},
    {.window = key_window{2, 2}},
    {.window = key_window{1, -1, 3}},
    {.chunks = key_chunks{2, 1}},
    {.causal = true, .prefixes = {4}},
    {.starts = {1}, .lengths = {4}},
    {.documents = {{{0, 5, 0, 4}}}},
};

TEST(edge_arguments, a_written_mask_names_wrong_arguments) {
    std::vector<std::byte> bytes(64, std::byte{9});
    std::byte* const to = bytes.data() + 32;
    for (const mask_rules& rules : each_rule) {
        EXPECT_EQ(refused_mask(rules, 5, 5, nullptr),
                  "mask rules: the address of a mask of 5 rows x 5 keys is null");
        for (const std::int64_t extent : {std::int64_t{-1}, std::int64_t{-3}, least, most}) {
            const std::string text = " is " + std::to_string(extent) + ", expected 0 to 2^48";
            EXPECT_EQ(refused_mask(rules, extent, 5, to), "mask rules: rows" + text);
            EXPECT_EQ(refused_mask(rules, 5, extent, to), "mask rules: keys" + text);
            EXPECT_EQ(refused_mask(rules, 0, extent, to), "mask rules: keys" + text);
        }
        EXPECT_TRUE(has(refused_mask(rules, huge / 4, huge / 4, to), {"do not fit 64 bits"}));
        for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{5}, huge / 4})
            for (std::byte* const address : {to, static_cast<std::byte*>(nullptr)}) {
                write_mask(rules, 1, 0, extent, 0, address);
                write_mask(rules, 1, 0, 0, extent, address);
            }
    }
    for (const std::int64_t sequence : {std::int64_t{-1}, std::int64_t{1}, least, most})
        EXPECT_THROW(write_mask({}, 1, sequence, 5, 5, to), argument_error);
    EXPECT_THROW(write_mask({}, 0, 0, 5, 5, to), argument_error);
    EXPECT_THROW(write_mask({}, -1, 0, 5, 5, to), argument_error);
    EXPECT_EQ(std::ranges::count(bytes, std::byte{9}), 64);
}

TEST(edge_arguments, an_unknown_data_type_is_undef_and_has_no_width) {
    const auto none = static_cast<data_type>(200);
    EXPECT_EQ(to_string(none), "undef");
    EXPECT_EQ(width_bytes(none), 0U);
    EXPECT_EQ(to_string(dims{least, most}),
              "{" + std::to_string(least) + "," + std::to_string(most) + "}");
}

} // namespace
} // namespace maskwise
