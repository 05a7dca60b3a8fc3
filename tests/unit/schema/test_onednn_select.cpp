#include "base/error.hpp"
#include "schema/select_schema.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

using enum data_type;
constexpr data_type every_type[] = {
#define MASKWISE_DATA_TYPE(name, width_bytes) data_type::name,
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
};

TEST(onednn_select, takes_exactly_its_type_matrix) {
    for (const data_type type : every_type) {
        const auto check = [type] { check_types(onednn_select(), boolean, type, type, type); };
        const auto check_cond = [type] { check_types(onednn_select(), type, f32, f32, f32); };
        if (type == f32 || type == bf16 || type == f16) {
            EXPECT_NO_THROW(check()) << to_string(type);
        } else {
            EXPECT_THROW(check(), invalid_argument) << to_string(type);
        }
        if (type != boolean) {
            EXPECT_THROW(check_cond(), invalid_argument) << to_string(type);
        }
    }
    EXPECT_THROW(check_types(onednn_select(), boolean, f32, bf16, f32), invalid_argument);
    EXPECT_THROW(check_types(onednn_select(), boolean, f32, f32, f16), invalid_argument);
}

TEST(onednn_select, refusals_name_dialect_input_and_expectation) {
    try {
        check_types(onednn_select(), boolean, f32, bf16, f32);
        FAIL();
    } catch (const invalid_argument& refusal) {
        const std::string text = refusal.what();
        for (const char* part : {"onednn::Select", "src_1", "bf16", "f32"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
    }
}

TEST(onednn_select, refusals_name_all_shapes) {
    try {
        infer_dst(onednn_select(), auto_broadcast::numpy, {3, 5}, {2, 3, 4, 5}, {});
        FAIL();
    } catch (const invalid_shape& refusal) {
        EXPECT_EQ(std::string(refusal.what()),
                  "onednn::Select: cond does not broadcast to src_0 and src_1: cond is {3,5}, "
                  "src_0 is {2,3,4,5}, src_1 is {}");
    }
}

// The specification's own examples.
TEST(onednn_select, broadcasts_in_two_steps) {
    const auto infer = [](const dims& cond, const dims& src_0, const dims& src_1) {
        return infer_dst(onednn_select(), auto_broadcast::numpy, cond, src_0, src_1);
    };
    EXPECT_EQ(infer({4, 5}, {2, 3, 4, 5}, {}), (dims{2, 3, 4, 5}));
    EXPECT_EQ(infer({3, 1, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}), (dims{2, 3, 4, 5}));
    EXPECT_EQ(infer({}, {2, 1}, {3}), (dims{2, 3}));
    EXPECT_THROW(infer({3, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}), invalid_shape);
    EXPECT_THROW(infer({2, 3}, {}, {}), invalid_shape); // cond would set the shape
    EXPECT_THROW(infer({}, {2}, {3}), invalid_shape);
}

TEST(onednn_select, none_needs_equal_shapes) {
    const auto infer = [](const dims& cond, const dims& src_0, const dims& src_1) {
        return infer_dst(onednn_select(), auto_broadcast::none, cond, src_0, src_1);
    };
    EXPECT_EQ(infer({2, 3}, {2, 3}, {2, 3}), (dims{2, 3}));
    EXPECT_THROW(infer({1, 3}, {2, 3}, {2, 3}), invalid_shape);
    EXPECT_THROW(infer({2, 3}, {2, 3}, {}), invalid_shape);
}

TEST(auto_broadcast, knows_two_words) {
    EXPECT_EQ(parse_auto_broadcast("none"), auto_broadcast::none);
    EXPECT_EQ(parse_auto_broadcast("numpy"), auto_broadcast::numpy);
    EXPECT_EQ(parse_auto_broadcast("NumPy"), std::nullopt);
    EXPECT_EQ(parse_auto_broadcast(""), std::nullopt);
    EXPECT_EQ(onednn_select().default_broadcast, auto_broadcast::numpy);
}

} // namespace
} // namespace maskwise
