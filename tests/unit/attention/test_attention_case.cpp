// The checker of attention results must report wrong results.

#include "support/attention_case.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace maskwise {
namespace {

using test::attention_case;

// A case whose dst has gaps between rows.
attention_case gapped_case() {
    attention_case problem = test::plain_case({2, 5, 4}, {2, 6, 4}, {2, 6, 3}, 1);
    test::generator random(2);
    problem.dst.elements.strides_bytes = {80, 16, 4};
    problem.dst.memory = test::place(random, problem.dst.elements, 4);
    return problem;
}

TEST(attention_case, accepts_expected_results) {
    attention_case problem = gapped_case();
    const test::output_memory before = test::copy_outputs(problem);
    const test::wanted_attention wanted = test::expected(problem);
    problem.dst.fill(wanted.dst);
    problem.statistics.fill(wanted.statistics);
    EXPECT_EQ(test::compare(problem, wanted, before), "");
}

TEST(attention_case, describes_the_fault) {
    attention_case problem = gapped_case();
    const test::output_memory before = test::copy_outputs(problem);
    const test::wanted_attention wanted = test::expected(problem);
    problem.statistics.fill(wanted.statistics);
    for (const double wrong : {wanted.dst[7] + 1e-4, std::nan(""), HUGE_VAL}) {
        std::vector<double> numbers = wanted.dst;
        numbers[7] = wrong;
        problem.dst.fill(numbers);
        EXPECT_EQ(test::compare(problem, wanted, before).rfind("dst element 7 is ", 0), 0);
    }
    problem.dst.fill(wanted.dst);
    problem.dst.elements.data[12] ^= std::byte{1}; // in the gap after the first row
    EXPECT_EQ(test::compare(problem, wanted, before), " bytes around dst were written");
}

TEST(attention_case, expects_results_computed_by_hand) {
    attention_case problem = test::plain_case({2, 2, 1}, {2, 2, 1}, {2, 2, 1}, 1);
    problem.query.fill({0, 1, 0, 1});
    problem.key.fill({0, std::log(3.0), 0, 0});
    problem.value.fill({1, 5, -2, 4});
    problem.desc.scale = 1;
    const test::wanted_attention wanted = test::expected(problem);
    const std::vector<double> dst{3, 4, 1, 1};
    for (std::size_t i = 0; i < dst.size(); ++i) EXPECT_NEAR(wanted.dst[i], dst[i], 1e-6);
    EXPECT_NEAR(wanted.statistics[1], std::log(4.0), 1e-6);
}

} // namespace
} // namespace maskwise
