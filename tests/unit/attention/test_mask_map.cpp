// Which tiles of a mask are kept, masked or mixed, against a look at every element.

#include "attention/mask_map.hpp"

#include "support/case_generator.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace maskwise {
namespace {

struct mask_case {
    dims outer;
    std::int64_t rows, keys;
    dims strides; // of {outer..., rows, keys}
    std::vector<std::uint8_t> bytes;
};

tile_mask expected_tile(const mask_case& what, std::int64_t head_offset, std::int64_t first_row,
                        std::int64_t first_key, std::int64_t tile) {
    const int rank = what.outer.rank();
    bool any_kept = false, any_masked = false;
    for (std::int64_t r = first_row; r < std::min(what.rows, first_row + tile); ++r)
        for (std::int64_t k = first_key; k < std::min(what.keys, first_key + tile); ++k) {
            const auto at = head_offset + r * what.strides[rank] + k * what.strides[rank + 1];
            (what.bytes[static_cast<std::size_t>(at)] != 0 ? any_kept : any_masked) = true;
        }
    return any_kept && any_masked ? tile_mask::mixed
           : any_kept             ? tile_mask::kept
                                  : tile_mask::masked;
}

// Every head looks its tiles up in the map, and finds what is there.
void check(const mask_case& what, std::int64_t tile) {
    const mask_layout layout =
        make_mask_layout(what.outer, what.rows, what.keys, what.strides, tile, tile);
    std::vector<tile_mask> map(static_cast<std::size_t>(layout.tiles()));
    for (std::int64_t i = 0; i < layout.heads * layout.row_tiles; ++i)
        map_row_tile(layout, what.bytes.data(), i, map.data() + i * layout.key_tiles);
    for (std::int64_t a = 0; a < what.outer[0]; ++a)
        for (std::int64_t b = 0; b < what.outer[1]; ++b)
            for (std::int64_t r = 0; r < what.rows; r += tile)
                for (std::int64_t k = 0; k < what.keys; k += tile) {
                    const auto place = place_in_map(layout, {a, b}, r / tile) + k / tile;
                    ASSERT_EQ(
                        map[static_cast<std::size_t>(place)],
                        expected_tile(what, a * what.strides[0] + b * what.strides[1], r, k, tile))
                        << a << ' ' << b << ' ' << r << ' ' << k << " of "
                        << to_string(what.strides);
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

TEST(mask_map, looks_once_at_what_heads_share) {
    const mask_layout layout = make_mask_layout({8, 12}, 100, 100, {0, 0, 100, 1}, 64, 64);
    EXPECT_EQ(layout.tiles(), 4);
    const mask_layout padding = make_mask_layout({8, 12}, 100, 100, {100, 0, 0, 1}, 64, 64);
    EXPECT_EQ(padding.tiles(), 8 * 2);
}

TEST(mask_map, knows_a_causal_boundary) {
    for (const std::int64_t boundary : {-20, -1, 0, 3, 40})
        for (std::int64_t row = 0; row < 40; row += 8)
            for (std::int64_t key = 0; key < 60; key += 10) {
                bool any_kept = false, any_masked = false;
                for (std::int64_t r = row; r < row + 8; ++r)
                    for (std::int64_t k = key; k < key + 10; ++k)
                        (k <= r + boundary ? any_kept : any_masked) = true;
                const tile_mask wanted = any_kept && any_masked ? tile_mask::mixed
                                         : any_kept             ? tile_mask::kept
                                                                : tile_mask::masked;
                EXPECT_EQ(causal_tile(boundary, row, 8, key, 10), wanted)
                    << boundary << ' ' << row << ' ' << key;
            }
}

} // namespace
} // namespace maskwise
