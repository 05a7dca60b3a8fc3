// Tests the 16-byte windows from which kernels assemble registers, and the bytes that windows may
// read.

#include "plan/windows.hpp"
#include "unit/plan/nests.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

using offsets = std::vector<std::int32_t>;
using shuffles = std::vector<std::uint8_t>;

constexpr std::uint8_t none = 0x80;

offsets multiples(std::int32_t step, std::int32_t count) {
    offsets result;
    for (std::int32_t i = 0; i < count; ++i) result.push_back(i * step);
    return result;
}

TEST(windows, pick_every_second_pair_of_bytes) {
    const byte_windows chosen = choose_windows(multiples(4, 8), 2);
    EXPECT_EQ(chosen.count, 2);
    EXPECT_EQ(chosen.offsets, (offsets{0, 16}));
    EXPECT_EQ(chosen.shuffles,
              (shuffles{0,    1,    4,    5,    8,    9,    12,   13,   none, none, none,
                        none, none, none, none, none, none, none, none, none, none, none,
                        none, none, 0,    1,    4,    5,    8,    9,    12,   13}));
}

// The last register ends with the buffer, so it begins with the fifth item.
TEST(windows, of_the_last_register_end_with_the_buffer) {
    EXPECT_EQ(choose_windows(multiples(2, 20), 1).offsets, (offsets{0, 16, 8, 24}));
}

TEST(windows, are_equally_many_for_every_register) {
    offsets places = multiples(1, 16);
    for (const std::int32_t place : multiples(2, 16)) places.push_back(100 + place);
    const byte_windows chosen = choose_windows(places, 1);
    EXPECT_EQ(chosen.offsets, (offsets{0, 0, 100, 116}));
    EXPECT_EQ(shuffles(chosen.shuffles.begin() + 16, chosen.shuffles.begin() + 32),
              shuffles(16, none));
    EXPECT_EQ(chosen.shuffles.size(), 4U * 16);
}

// The number of windows for 16 bytes in `windows` groups of adjacent bytes.
std::int64_t windows_of(std::int32_t windows) {
    offsets places;
    for (std::int32_t i = 0; i < 16; ++i) places.push_back(i % windows * 100 + i / windows);
    return choose_windows(places, 1).count;
}

// A window takes as long as two moves. A run of three bytes needs two moves.
TEST(windows, are_used_unless_moves_are_faster) {
    EXPECT_EQ(windows_of(8), 8);
    EXPECT_EQ(windows_of(9), 0);
    EXPECT_EQ(choose_windows({{0, 100, 200, 300, 400, 500}}, 3).count, 0); // 12 moves
    EXPECT_EQ(choose_windows({{0, 3, 100, 103, 200, 203}}, 3).count, 3);
    EXPECT_EQ(choose_windows({{0, 100, 200, 300, 400, 500, 600, 700}}, 2).count, 0); // 8 moves
    EXPECT_EQ(choose_windows({{0, 2, 100, 102, 200, 202, 300, 302}}, 2).count, 4);
}

TEST(windows, fill_whole_registers_only) {
    EXPECT_EQ(choose_windows(multiples(2, 16), 1).count, 2);
    EXPECT_EQ(choose_windows(multiples(2, 15), 1).count, 0);
    EXPECT_EQ(choose_windows(multiples(100, 4), 16).count, 0);
}

// windows_end of a cond of 10 x 10 x 10 bytes with these strides.
std::int64_t end_of(std::int64_t inner, std::int64_t middle, std::int64_t outer) {
    return windows_end(
        nest_of({{10, {inner, 0, 0, 4}}, {10, {middle, 0, 0, 40}}, {10, {outer, 0, 0, 400}}}),
        op_cond);
}

TEST(windows, end_with_the_last_element) {
    EXPECT_EQ(end_of(1, 20, 300), 9 + 180 + 2700 + 1);
    EXPECT_EQ(end_of(300, 20, 1), 9 + 180 + 2700 + 1);
    EXPECT_EQ(end_of(1, -20, 300), 9 + 2700 + 1); // the middle loop runs backwards
    EXPECT_EQ(end_of(1, 0, 300), 9 + 2700 + 1);
}

// A window may cross a gap of 2 KB, measured from the end of the inner loops.
TEST(windows, do_not_cross_long_gaps) {
    EXPECT_EQ(end_of(1, 10 + 2048, 30000), 0);
    EXPECT_NE(end_of(1, 10 + 2048, 9 * 2058 + 10 + 2048), 0);
    EXPECT_EQ(end_of(1, 10 + 2049, 9 * 2058 + 10), 0);
    EXPECT_EQ(end_of(1, 10 + 2048, 9 * 2058 + 10 + 2049), 0);
    EXPECT_NE(end_of(1, -10 - 2048, 0), 0);
    EXPECT_EQ(end_of(1, -10 - 2049, 0), 0);
}

} // namespace
} // namespace maskwise
