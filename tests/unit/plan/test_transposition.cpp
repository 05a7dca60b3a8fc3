// Tests the number of items that a block of the transpose kernel reads at once. The number depends
// on L1's sets and ways.

#include "plan/transposition.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

// items_at_once for 48 rows that are `step` bytes apart, in an L1 cache of 64 sets.
std::int64_t at_once(std::int32_t step, std::int64_t ways) {
    std::vector<std::int32_t> offsets;
    for (std::int32_t i = 0; i < 48; ++i) offsets.push_back(i * step);
    return items_at_once(offsets, {ways * 64 * 64, ways, 1 << 20, 1 << 20});
}

TEST(items_at_once, are_at_most_the_ways_if_rows_share_a_set) {
    EXPECT_EQ(at_once(4096, 8), 8);
    EXPECT_EQ(at_once(8192, 8), 8);
    EXPECT_EQ(at_once(-8192, 8), 8);
    EXPECT_EQ(at_once(4096, 12), 8);
    EXPECT_EQ(at_once(4096, 16), 16);
}

TEST(items_at_once, grow_with_the_sets_that_rows_share) {
    EXPECT_EQ(at_once(2048, 8), 16);
    EXPECT_EQ(at_once(1024, 8), 32);
}

TEST(items_at_once, are_32_if_rows_spread_over_the_sets) {
    EXPECT_EQ(at_once(4096 + 64, 8), 32);
    EXPECT_EQ(at_once(250, 8), 32);
    EXPECT_EQ(at_once(2, 8), 32);
}

TEST(items_at_once, are_never_fewer_than_four) {
    EXPECT_EQ(at_once(4096, 2), 4);
}

} // namespace
} // namespace maskwise
