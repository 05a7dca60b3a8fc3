#include "base/recent_plans.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

namespace maskwise {
namespace {

TEST(recent_plans, caches_the_four_most_recently_used) {
    recent_plans<int, int> plans;
    std::vector<int> built;
    const auto use = [&](int key) {
        return plans.find(key, [&] {
            built.push_back(key);
            return 10 * key;
        });
    };
    for (const int key : {1, 2, 3, 4, 1, 5, 1, 3, 2}) EXPECT_EQ(use(key), 10 * key);
    EXPECT_EQ(built, (std::vector{1, 2, 3, 4, 5, 2}));
}

TEST(recent_plans, does_not_cache_a_refused_plan) {
    recent_plans<int, int> plans;
    EXPECT_THROW(plans.find(1, []() -> int { throw std::runtime_error("refused"); }),
                 std::runtime_error);
    EXPECT_EQ(plans.find(1, [] { return 7; }), 7);
}

} // namespace
} // namespace maskwise
