// Tests parse_auto_broadcast directly, because the public C++ API takes an enumeration, not a word.

#include "schema/select_schema.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

TEST(auto_broadcast, knows_two_words) {
    EXPECT_EQ(parse_auto_broadcast("none"), auto_broadcast::none);
    EXPECT_EQ(parse_auto_broadcast("numpy"), auto_broadcast::numpy);
    EXPECT_EQ(parse_auto_broadcast("NumPy"), std::nullopt);
    EXPECT_EQ(parse_auto_broadcast(""), std::nullopt);
    EXPECT_EQ(onednn_select().default_broadcast, auto_broadcast::numpy);
}

} // namespace
} // namespace maskwise
