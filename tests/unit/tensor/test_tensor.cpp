#include "base/error.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace maskwise {
namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 2;

TEST(broadcast_numpy, aligns_at_the_last_dimension) {
    EXPECT_EQ(broadcast_numpy({2, 3, 4, 5}, {4, 5}), (dims{2, 3, 4, 5}));
    EXPECT_EQ(broadcast_numpy({4, 5}, {3, 1, 5}), (dims{3, 4, 5}));
    EXPECT_EQ(broadcast_numpy({}, {7}), (dims{7}));
    EXPECT_EQ(broadcast_numpy({}, {}), (dims{}));
    EXPECT_EQ(broadcast_numpy({2, 1}, {1, 3}), (dims{2, 3}));
}

TEST(broadcast_numpy, handles_zero_like_numpy) {
    EXPECT_EQ(broadcast_numpy({0, 3}, {1, 3}), (dims{0, 3}));
    EXPECT_EQ(broadcast_numpy({0}, {}), (dims{0}));
    EXPECT_EQ(broadcast_numpy({0}, {3}), std::nullopt);
}

TEST(broadcast_numpy, refuses_unequal_and_negative_extents) {
    EXPECT_EQ(broadcast_numpy({2, 3}, {4, 3}), std::nullopt);
    EXPECT_EQ(broadcast_numpy({-1}, {1}), std::nullopt);
    EXPECT_EQ(broadcast_numpy({-1}, {-1}), std::nullopt);
}

TEST(broadcasts_one_way, expands_only_the_first_shape) {
    EXPECT_TRUE(broadcasts_one_way({4, 5}, {2, 3, 4, 5}));
    EXPECT_TRUE(broadcasts_one_way({3, 1, 5}, {2, 3, 4, 5}));
    EXPECT_TRUE(broadcasts_one_way({}, {2}));
    EXPECT_TRUE(broadcasts_one_way({1}, {0}));
    EXPECT_FALSE(broadcasts_one_way({3, 5}, {2, 3, 4, 5}));
    EXPECT_FALSE(broadcasts_one_way({2}, {1}));
    EXPECT_FALSE(broadcasts_one_way({1, 1}, {1}));
    EXPECT_FALSE(broadcasts_one_way({1}, {-1}));
}

TEST(tensor_desc, dense_strides_are_in_bytes) {
    EXPECT_EQ(dense_desc(data_type::f32, {2, 3, 4}).strides_bytes, (dims{48, 16, 4}));
    EXPECT_EQ(dense_desc(data_type::bf16, {5}).strides_bytes, (dims{2}));
    EXPECT_EQ(dense_desc(data_type::f32, {2, 0, 4}).strides_bytes, (dims{16, 16, 4}));
    EXPECT_EQ(dense_desc(data_type::complex128, {}).strides_bytes, (dims{}));
    EXPECT_THROW(dense_desc(data_type::f64, {huge, huge}), shape_error);
    EXPECT_THROW(dense_desc(data_type::f64, {-2}), shape_error);
}

TEST(dense_strides, follow_an_order) {
    EXPECT_EQ(dense_strides({2, 3, 4}, 1), (dims{12, 4, 1}));
    EXPECT_EQ(dense_strides({2, 3, 4}, 2, order_of({1, 100, 10})), (dims{2, 16, 4}));
    EXPECT_EQ(dense_strides({2, 3, 4}, 1, order_of({0, 0, 7})), (dims{3, 1, 6})); // ties
    EXPECT_EQ(dense_strides({5, 0}, 1, order_of({1, 5})), (dims{1, 5}));
    EXPECT_EQ(dense_desc(data_type::f32, {2, 3}, order_of({1, 2})).strides_bytes, (dims{4, 8}));
    EXPECT_THROW(dense_strides({huge, 3}, 1), shape_error);
}

TEST(data_type, classifies_types_computed_in_f32_and_8_bit_integers) {
    std::string computed, quantized;
    for (int i = 0; i <= static_cast<int>(data_type::string); ++i) {
        const auto type = static_cast<data_type>(i);
        if (computes_in_f32(type)) computed.append(" ").append(to_string(type));
        if (is_8_bit_integer(type)) quantized.append(" ").append(to_string(type));
        EXPECT_EQ(is_16_bit_float(type), computes_in_f32(type) && width_bytes(type) == 2);
    }
    EXPECT_EQ(computed, " f16 bf16 f32");
    EXPECT_EQ(quantized, " i8 u8");
}

TEST(tensor_desc, counts_elements) {
    EXPECT_EQ(element_count({}), 1);
    EXPECT_EQ(element_count({2, 3}), 6);
    EXPECT_EQ(element_count({huge, huge, 0}), 0);
    EXPECT_THROW(element_count({huge, 3}), shape_error);
}

TEST(tensor_desc, spans_to_the_last_byte) {
    EXPECT_EQ(span_bytes(dense_desc(data_type::f32, {2, 3})), 24);
    EXPECT_EQ(span_bytes({data_type::f32, {2, 3}, {100, 8}}), 100 + 16 + 4);
    EXPECT_EQ(span_bytes({data_type::f32, {2, 0}, {100, 8}}), 0);
    EXPECT_EQ(span_bytes({data_type::u8, {}, {}}), 1);
    EXPECT_EQ(span_bytes({data_type::u8, {9}, {0}}), 1);
    EXPECT_EQ(span_bytes({data_type::f32, {2, 3}, {-100, 8}}), 100 + 16 + 4);
    EXPECT_THROW(span_bytes({data_type::u8, {4}, {huge}}), shape_error);
    EXPECT_THROW(span_bytes({data_type::u8, {2}, {INT64_MIN}}), shape_error);
    EXPECT_EQ(span_bytes({data_type::u8, {2}, {max_span_bytes - 1}}), max_span_bytes);
    EXPECT_THROW(span_bytes({data_type::u8, {2}, {max_span_bytes}}), shape_error);
}

} // namespace
} // namespace maskwise
