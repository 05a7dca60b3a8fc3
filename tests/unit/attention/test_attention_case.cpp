// The checker of attention notices wrong results.

#include "support/attention_case.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace maskwise {
namespace {

using test::attention_case;

// A case whose dst holds the expected values, in memory with gaps between rows.
attention_case right_case() {
    attention_case what = test::plain_case({2, 5, 4}, {2, 6, 4}, {2, 6, 3}, 1);
    test::generator random(2);
    what.dst.at.strides_bytes = {80, 16, 4};
    what.dst.memory = test::place(random, what.dst.at, 4);
    return what;
}

TEST(attention_case, is_right_where_nothing_is_wrong) {
    attention_case what = right_case();
    const test::output_memory before = test::copy_outputs(what);
    const test::wanted_attention wanted = test::expected(what);
    what.dst.fill(wanted.dst);
    what.statistics.fill(wanted.statistics);
    EXPECT_EQ(test::compare(what, wanted, before), "");
}

TEST(attention_case, describes_the_fault) {
    attention_case what = right_case();
    const test::output_memory before = test::copy_outputs(what);
    const test::wanted_attention wanted = test::expected(what);
    what.statistics.fill(wanted.statistics);
    for (const double wrong : {wanted.dst[7] + 1e-4, std::nan(""), HUGE_VAL}) {
        std::vector<double> numbers = wanted.dst;
        numbers[7] = wrong;
        what.dst.fill(numbers);
        EXPECT_EQ(test::compare(what, wanted, before).rfind("dst element 7 is ", 0), 0);
    }
    what.dst.fill(wanted.dst);
    what.dst.at.data[12] ^= std::byte{1}; // after the first row
    EXPECT_EQ(test::compare(what, wanted, before), " bytes around dst were written");
}

TEST(attention_case, expects_results_computed_by_hand) {
    attention_case what = test::plain_case({2, 2, 1}, {2, 2, 1}, {2, 2, 1}, 1);
    what.query.fill({0, 1, 0, 1});
    what.key.fill({0, std::log(3.0), 0, 0});
    what.value.fill({1, 5, -2, 4});
    what.desc.scale = 1;
    const test::wanted_attention wanted = test::expected(what);
    const std::vector<double> dst{3, 4, 1, 1};
    for (std::size_t i = 0; i < dst.size(); ++i) EXPECT_NEAR(wanted.dst[i], dst[i], 1e-6);
    EXPECT_NEAR(wanted.statistics[1], std::log(4.0), 1e-6);
}

} // namespace
} // namespace maskwise
