// Compares random Selects of the public API with a reference that shares no code with the library.
// Covers every dialect and type, shapes that do not broadcast, and any strides.
#include "maskwise/maskwise.hpp"

#include "support/case_generator.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace maskwise;
using test::draw;
using test::generator;
using test::one_in;
using test::view;
using shape = std::vector<std::int64_t>;
using enum data_type;

// Each type and its bytes per element in the reference, where one byte stands for a string.
constexpr std::pair<data_type, std::int64_t> types[] = {
    {boolean, 1}, {i8, 1},        {u8, 1},          {i16, 2},   {u16, 2}, {f16, 2},
    {bf16, 2},    {i32, 4},       {u32, 4},         {f32, 4},   {i64, 8}, {u64, 8},
    {f64, 8},     {complex64, 8}, {complex128, 16}, {string, 1}};

constexpr std::int64_t string_bytes = sizeof(std::string);

bool has_type(dialect form, data_type type) {
    const bool is_number = type != complex64 && type != complex128 && type != string;
    if (form == dialect::onednn_select) return type == f32 || type == f16 || type == bf16;
    if (form == dialect::openvino_select_1) return is_number;
    return form == dialect::onnx_where_16 || type != bf16;
}

// Returns dst's shape, or nullopt if the dialect refuses the shapes.
std::optional<shape> expected_shape(dialect form, auto_broadcast broadcast, const shape& cond,
                                    const shape& src_0, const shape& src_1) {
    if (broadcast == auto_broadcast::none)
        return cond == src_0 && src_0 == src_1 ? std::optional(src_0) : std::nullopt;
    const bool is_onnx = form == dialect::onnx_where_9 || form == dialect::onnx_where_16;
    return test::select_shape(cond, src_0, src_1, is_onnx);
}

tensor_desc describe(data_type type, const view& operand) {
    tensor_desc desc{type, dims(operand.extents), dims(operand.strides_bytes)};
    if (type == string)
        for (std::int64_t& stride : desc.strides_bytes) stride *= string_bytes;
    return desc;
}

// Even bytes become strings short enough for std::string's inline buffer.
std::vector<std::string> strings_of(std::span<const std::byte> bytes) {
    std::vector<std::string> values;
    for (const std::byte byte : bytes) {
        const auto number = std::to_integer<unsigned char>(byte);
        values.emplace_back(number % 2 == 0 ? 3U : 30U, static_cast<char>(number));
    }
    return values;
}

struct random_select {
    dialect form;
    auto_broadcast broadcast;
    data_type type;
    std::int64_t width;
    view cond, src_0, src_1;
};

random_select draw_select(generator& random) {
    random_select drawn;
    drawn.form = static_cast<dialect>(draw(random, 0, 3));
    const bool has_none =
        drawn.form == dialect::onednn_select || drawn.form == dialect::openvino_select_1;
    drawn.broadcast = has_none && one_in(random, 8) ? auto_broadcast::none : auto_broadcast::numpy;
    const auto pick = static_cast<std::size_t>(draw(random, 0, std::size(types) - 1));
    drawn.type = types[pick].first;
    drawn.width = types[pick].second;
    const shape common = test::draw_shape(random, 3000);
    const bool has_equal_shapes = drawn.broadcast == auto_broadcast::none && one_in(random, 2);
    for (view* operand : {&drawn.cond, &drawn.src_0, &drawn.src_1}) {
        *operand = test::draw_input(random, common, operand == &drawn.cond ? 1 : drawn.width);
        if (has_equal_shapes) {
            operand->extents = common;
            test::lay_out(random, *operand, operand == &drawn.cond ? 1 : drawn.width);
        }
        if (one_in(random, 12) && !operand->extents.empty()) ++operand->extents[0];
    }
    return drawn;
}

select_desc describe(const random_select& drawn) {
    return {.cond = describe(boolean, drawn.cond),
            .src_0 = describe(drawn.type, drawn.src_0),
            .src_1 = describe(drawn.type, drawn.src_1)};
}

void check_values(generator& random, const random_select& drawn, const shape& expected) {
    select_desc desc = describe(drawn);
    view dst{nullptr, expected, {}};
    test::lay_out(random, dst, drawn.width);
    if (!one_in(random, 2)) desc.dst = describe(drawn.type, dst);
    const plan select = compile(drawn.form, desc, drawn.broadcast);
    ASSERT_EQ(select.dst().extents, dims(expected));
    ASSERT_EQ(select.dst(), infer_dst(drawn.form, desc, drawn.broadcast));
    dst.strides_bytes.assign(select.dst().strides_bytes.begin(), select.dst().strides_bytes.end());
    if (drawn.type == string)
        for (std::int64_t& stride : dst.strides_bytes) stride /= string_bytes;
    view c = drawn.cond, x = drawn.src_0, y = drawn.src_1;
    const auto masks = test::place(random, c, 1), firsts = test::place(random, x, drawn.width),
               seconds = test::place(random, y, drawn.width),
               result = test::place(random, dst, drawn.width);
    test::fill_mask(random, masks.data(), masks.size());
    std::vector<std::byte> wanted(result.data(), result.data() + result.size());
    view reference = dst;
    if (!wanted.empty()) reference.data = wanted.data() + (dst.data - result.data());
    test::select_reference(c, x, y, reference, drawn.width);
    if (drawn.type == string) {
        auto first = strings_of(firsts.bytes()), second = strings_of(seconds.bytes()),
             to = strings_of(result.bytes());
        select.execute({.cond = c.data,
                        .src_0 = first.data() + (x.data - firsts.data()),
                        .src_1 = second.data() + (y.data - seconds.data())},
                       to.data() + (dst.data - result.data()));
        ASSERT_EQ(to, strings_of(wanted)) << to_string(select);
        return;
    }
    select.execute({.cond = c.data, .src_0 = x.data, .src_1 = y.data}, dst.data);
    ASSERT_TRUE(result.intact()) << to_string(select);
    if (wanted.empty()) return;
    ASSERT_EQ(std::memcmp(wanted.data(), result.data(), wanted.size()), 0) << to_string(select);
}

struct outcomes {
    int selected = 0, refused_types = 0, refused_shapes = 0, cond_expanded = 0;
};

void check_select(std::uint64_t seed, outcomes& seen) {
    generator random(seed);
    const random_select drawn = draw_select(random);
    const select_desc desc = describe(drawn);
    SCOPED_TRACE("MASKWISE_TEST_SEED for this case: " + std::to_string(seed) + ", " +
                 std::string(to_string(drawn.form)) + ' ' + std::string(to_string(drawn.type)) +
                 ' ' + to_string(desc.cond.extents) + to_string(desc.src_0.extents) +
                 to_string(desc.src_1.extents));
    const auto infer = [&] { infer_dst(drawn.form, desc, drawn.broadcast); };
    if (!has_type(drawn.form, drawn.type)) {
        ++seen.refused_types;
        EXPECT_THROW(infer(), argument_error);
        return;
    }
    const auto expected = expected_shape(drawn.form, drawn.broadcast, drawn.cond.extents,
                                         drawn.src_0.extents, drawn.src_1.extents);
    if (!expected) {
        ++seen.refused_shapes;
        EXPECT_THROW(infer(), shape_error);
        return;
    }
    ++seen.selected;
    seen.cond_expanded += test::broadcast({drawn.src_0.extents, drawn.src_1.extents}) != expected;
    check_values(random, drawn, *expected);
}

TEST(api_oracle, agrees_with_the_reference) {
    outcomes seen;
    const int cases = 8000;
    for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i)
        check_select(test::base_seed() + static_cast<std::uint64_t>(i), seen);
    // Each outcome must occur often enough.
    EXPECT_GE(seen.selected, cases / 4);
    EXPECT_GE(seen.refused_types, cases / 20);
    EXPECT_GE(seen.refused_shapes, cases / 20);
    EXPECT_GE(seen.cond_expanded, cases / 50);
}

} // namespace
