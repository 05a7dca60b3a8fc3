// Random expressions on random elements. MASKWISE_TEST_EXPRESSIONS=<n> tries n of each instruction
// set instead of a few thousand, MASKWISE_TEST_SEED others.

#include "base/error.hpp"
#include "jit/random_expression.hpp"

#include <cstdlib>

namespace maskwise::test {
namespace {

using jit::expression;

std::int64_t trials() {
    const char* text = std::getenv("MASKWISE_TEST_EXPRESSIONS");
    return text == nullptr ? 3000 : std::strtoll(text, nullptr, 10);
}

class random_expressions : public testing::TestWithParam<isa> {};

// Expressions that need too many registers are refused; most must not be.
TEST_P(random_expressions, agree_with_double_precision) {
    generator random(base_seed());
    std::int64_t refused = 0;
    for (std::int64_t i = 0; i < trials(); ++i) {
        const expression what = draw_expression(random);
        const trial how = draw_trial(random, what);
        try {
            ASSERT_TRUE(try_expression(random, what, how, GetParam())) << "trial " << i;
        } catch (const invalid_argument& refusal) {
            ASSERT_NE(std::string(refusal.what()).find("registers at once"), std::string::npos)
                << refusal.what() << '\n'
                << to_string(what);
            // What the graph merges is this small, so that it never fails to compile.
            ASSERT_GT(what.nodes.size(), 10U) << to_string(what);
            ++refused;
        }
    }
    EXPECT_LT(refused, trials() / 10);
}

INSTANTIATE_TEST_SUITE_P(every_target, random_expressions, testing::ValuesIn(jit_targets()),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

} // namespace
} // namespace maskwise::test
