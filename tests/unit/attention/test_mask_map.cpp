// Compares tile classification with a scan of every element.

#include "attention/mask_map.hpp"

#include "kernel/kernel_table.hpp"
#include "support/case_generator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace maskwise {
namespace {

const attention_kernels& kernels() {
    return kernel_table_for(active_isa()).attention;
}

struct mask_case {
    dims outer;
    std::int64_t rows, keys;
    dims strides; // of {outer..., rows, keys}
    std::vector<std::uint8_t> bytes;
};

tile_mask expected_tile(const mask_case& problem, std::int64_t head_offset, std::int64_t first_row,
                        std::int64_t first_key, std::int64_t tile) {
    const int rank = problem.outer.rank();
    bool any_unmasked = false, any_masked = false;
    for (std::int64_t r = first_row; r < std::min(problem.rows, first_row + tile); ++r)
        for (std::int64_t k = first_key; k < std::min(problem.keys, first_key + tile); ++k) {
            const auto index =
                head_offset + r * problem.strides[rank] + k * problem.strides[rank + 1];
            (problem.bytes[static_cast<std::size_t>(index)] != 0 ? any_unmasked : any_masked) =
                true;
        }
    return any_unmasked && any_masked ? tile_mask::mixed
           : any_unmasked             ? tile_mask::kept
                                      : tile_mask::masked;
}

void check(const mask_case& problem, std::int64_t tile) {
    const mask_layout layout = make_mask_layout(mask_kind::true_keeps, problem.outer, problem.rows,
                                                problem.keys, problem.strides, tile, tile);
    std::vector<tile_mask> map(static_cast<std::size_t>(layout.tiles()));
    for (std::int64_t i = 0; i < layout.heads * layout.row_tiles; ++i)
        map_row_tile(layout, kernels(), problem.bytes.data(), i, map.data() + i * layout.key_tiles,
                     nullptr);
    for (std::int64_t a = 0; a < problem.outer[0]; ++a)
        for (std::int64_t b = 0; b < problem.outer[1]; ++b)
            for (std::int64_t r = 0; r < problem.rows; r += tile)
                for (std::int64_t k = 0; k < problem.keys; k += tile) {
                    const auto place = place_in_map(layout, dims{a, b}, r / tile) + k / tile;
                    ASSERT_EQ(map[static_cast<std::size_t>(place)],
                              expected_tile(problem,
                                            a * problem.strides[0] + b * problem.strides[1], r, k,
                                            tile))
                        << a << ' ' << b << ' ' << r << ' ' << k << " of "
                        << to_string(problem.strides);
                }
}

std::vector<std::uint8_t> blocks(std::size_t count) {
    std::vector<std::uint8_t> bytes;
    test::generator random(count);
    while (bytes.size() < count)
        bytes.insert(bytes.end(), static_cast<std::size_t>(test::draw(random, 1, 300)),
                     test::one_in(random, 2)
                         ? std::uint8_t{0}
                         : static_cast<std::uint8_t>(test::draw(random, 1, 255)));
    return bytes;
}

TEST(mask_map, finds_kept_masked_and_mixed_tiles) {
    for (const std::int64_t rows : {1, 16, 37})
        for (const std::int64_t keys : {1, 16, 40, 100}) {
            const std::int64_t matrix = rows * keys;
            const auto bytes = blocks(static_cast<std::size_t>(6 * matrix));
            for (const dims& strides :
                 {dims{3 * matrix, matrix, keys, 1}, dims{0, matrix, keys, 1},
                  dims{matrix, 0, keys, 1}, dims{0, 0, keys, 1}, dims{0, 0, 0, 1}, dims{0, 0, 1, 0},
                  dims{0, 0, 0, 0}, dims{matrix, 0, 1, rows}, dims{keys, 0, 0, 1}})
                check({{2, 3}, rows, keys, strides, bytes}, 16);
        }
}

TEST(mask_map, scans_a_shared_mask_once) {
    const mask_layout layout =
        make_mask_layout(mask_kind::true_keeps, {8, 12}, 100, 100, {0, 0, 100, 1}, 64, 64);
    EXPECT_EQ(layout.tiles(), 4);
    const mask_layout padding =
        make_mask_layout(mask_kind::true_keeps, {8, 12}, 100, 100, {100, 0, 0, 1}, 64, 64);
    EXPECT_EQ(padding.tiles(), 8 * 2);
}

struct classified_bias {
    tile_mask state;
    float highest;
};

// Classifies a tile in which one element is `one` and all other elements are `others`.
template <class Element>
classified_bias classify_bias(mask_kind kind, Element others, Element one,
                              bool bounds_mixed = true) {
    constexpr std::int64_t width = sizeof(Element);
    mask_layout layout = make_mask_layout(kind, {1}, 4, 5, {0, 5 * width, width}, 16, 16);
    layout.bounds_mixed = bounds_mixed;
    std::vector<Element> bias(20, others);
    bias[13] = one;
    classified_bias bias_state{};
    map_row_tile(layout, kernels(), bias.data(), 0, &bias_state.state, &bias_state.highest);
    return bias_state;
}

template <class Element>
tile_mask tile_of_bias(mask_kind kind, Element others, Element one) {
    return classify_bias(kind, others, one).state;
}

// Tests values near the masking threshold and near -infinity.
TEST(mask_map, classifies_tiles_of_a_bias) {
    using u16 = std::uint16_t;
    constexpr u16 bf16_masks[] = {0xF14A, 0xFF7F, 0xFF80}, f16_masks[] = {0xFBFF, 0xFC00};
    constexpr u16 bf16_adds[] = {0xF149, 0xFF81, 0x7F80, 0x0000, 0xBF80};
    constexpr u16 f16_adds[] = {0xFBFE, 0xFC01, 0x7C00, 0x0000};
    for (const float masks : {-1e30F, std::numeric_limits<float>::lowest(), -INFINITY})
        EXPECT_EQ(tile_of_bias(mask_kind::bias_f32, -INFINITY, masks), tile_mask::masked) << masks;
    for (const float adds : {-0.999999e30F, NAN, -NAN, INFINITY, 1e-45F, -1.0F, 0.0F})
        EXPECT_EQ(tile_of_bias(mask_kind::bias_f32, -INFINITY, adds), tile_mask::mixed) << adds;
    for (const u16 masks : bf16_masks)
        EXPECT_EQ(tile_of_bias<u16>(mask_kind::bias_bf16, 0xFF80, masks), tile_mask::masked);
    for (const u16 adds : bf16_adds)
        EXPECT_EQ(tile_of_bias<u16>(mask_kind::bias_bf16, 0xFF80, adds), tile_mask::mixed);
    for (const u16 masks : f16_masks)
        EXPECT_EQ(tile_of_bias<u16>(mask_kind::bias_f16, 0xFC00, masks), tile_mask::masked);
    for (const u16 adds : f16_adds)
        EXPECT_EQ(tile_of_bias<u16>(mask_kind::bias_f16, 0xFC00, adds), tile_mask::mixed);
    EXPECT_EQ(tile_of_bias(mask_kind::bias_f32, 0.0F, -0.0F), tile_mask::kept);
    EXPECT_EQ(tile_of_bias<u16>(mask_kind::bias_f16, 0, 0x8000), tile_mask::kept);
    EXPECT_EQ(tile_of_bias<u16>(mask_kind::bias_bf16, 0, 1), tile_mask::mixed);
}

// map_row_tile returns a tile's highest bias as f32, or infinity if the tile is mixed and
// bounds_mixed is false.
TEST(mask_map, finds_the_highest_bias) {
    using u16 = std::uint16_t;
    const auto highest = [](mask_kind kind, auto others, auto one) {
        return classify_bias(kind, others, one).highest;
    };
    constexpr float lowest = std::numeric_limits<float>::lowest();
    EXPECT_EQ(highest(mask_kind::bias_f32, -INFINITY, lowest), lowest);
    EXPECT_EQ(highest(mask_kind::bias_f32, -INFINITY, -INFINITY), -INFINITY);
    EXPECT_EQ(highest(mask_kind::bias_f32, 0.0F, -0.0F), 0);
    EXPECT_EQ(highest(mask_kind::bias_f32, -3.0F, -1e9F), -3);
    EXPECT_EQ(highest(mask_kind::bias_f32, -1e30F, 2.5F), 2.5F);
    EXPECT_EQ(classify_bias(mask_kind::bias_f32, -1e30F, 2.5F, false).highest, INFINITY);
    EXPECT_TRUE(std::isnan(highest(mask_kind::bias_f32, 1.0F, -NAN)));
    EXPECT_TRUE(std::isnan(highest(mask_kind::bias_f32, NAN, 1.0F)));
    EXPECT_EQ(highest(mask_kind::bias_bf16, u16{0xFF80}, u16{0xF14A}), -0x1.94p99F);
    EXPECT_EQ(highest(mask_kind::bias_bf16, u16{0xC000}, u16{0x3F80}), 1);
    EXPECT_EQ(highest(mask_kind::bias_f16, u16{0xFC00}, u16{0xFBFF}), -65504);
    EXPECT_EQ(highest(mask_kind::bias_f16, u16{0xC000}, u16{0x3555}), 0x1.554p-2F);
    EXPECT_EQ(highest(mask_kind::bias_f16, u16{0xC000}, u16{0x0001}), 0x1p-24F);
    EXPECT_EQ(highest(mask_kind::bias_f16, u16{0xC000}, u16{0x7C00}), INFINITY);
    EXPECT_TRUE(std::isnan(highest(mask_kind::bias_f16, u16{0xC000}, u16{0x7C01})));
}

} // namespace
} // namespace maskwise
