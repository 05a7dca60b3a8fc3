// One allocation in compile or execute fails, alone or with all later ones. The call must throw
// std::bad_alloc, write nothing and leak nothing. A repeated call must work.

#include "support/allocations.hpp"
#include "support/attention_case.hpp"

#include <gtest/gtest.h>

namespace maskwise {
namespace {

using test::attention_case;

struct scenario {
    const char* name;
    attention_case (*make)();
    int threads; // of the parallel_loop, which runs serially; 0: no loop
};

// Without PrintTo, GoogleTest prints a scenario's bytes, including padding.
void PrintTo(const scenario& failure, std::ostream* out) {
    *out << failure.name;
}

attention_case plain() {
    return test::plain_case({2, 40, 16}, {2, 70, 16}, {2, 70, 16}, 1);
}

attention_case with_everything() {
    attention_case problem = test::plain_case({3, 2, 70, 9}, {3, 1, 90, 9}, {3, 1, 90, 5}, 2);
    test::generator random(3);
    std::vector<double> unmasked(3 * 90);
    for (std::size_t i = 0; i < unmasked.size(); ++i) unmasked[i] = i % 3 == 0 ? 0 : 1;
    test::set_cond(problem, {3, 1, 1, 90}, unmasked);
    lay_out(random, problem.bias, data_type::bf16, {70, 90}, test::layout::any);
    problem.bias.fill(std::vector<double>(70 * 90, 0.5));
    problem.desc.fill = -2;
    problem.rules = mask_rules{.from_end = true, .causal = true};
    problem.describe();
    return problem;
}

attention_case decoding() {
    return test::plain_case({2, 1, 16}, {2, 2000, 16}, {2, 2000, 16}, 4);
}

void compile_and_execute(const attention_case& problem, int threads) {
    const attention_plan plan = compile(problem.desc);
    if (threads == 0) return plan.execute(problem.operands());
    const auto one_by_one = [](std::int64_t count, const auto& body) {
        for (std::int64_t i = 0; i < count; ++i) body(i);
    };
    plan.execute(problem.operands(), {threads, one_by_one});
}

// Returns whether an allocation failed.
bool run_failing(const attention_case& problem, int threads, std::int64_t number, bool onwards) {
    bool was_thrown = false;
    test::fail_allocation(number, onwards);
    try {
        compile_and_execute(problem, threads);
    } catch (const std::bad_alloc&) {
        was_thrown = true;
    }
    const bool has_failed = test::stop_failing();
    EXPECT_EQ(was_thrown, has_failed) << "allocation " << number;
    return has_failed;
}

class failing_attention : public testing::TestWithParam<std::tuple<scenario, bool>> {};

TEST_P(failing_attention, throws_bad_alloc_and_works_afterwards) {
    const auto& [which, onwards] = GetParam();
    const attention_case problem = which.make();
    const test::wanted_attention wanted = test::expected(problem);
    compile_and_execute(problem, which.threads); // creates once-per-process state
    std::int64_t number = 0;
    for (bool has_failed = true; has_failed && !HasFailure(); ++number) {
        test::generator random(static_cast<std::uint64_t>(number));
        test::fill_random(random, problem.dst.memory.data(), problem.dst.memory.size());
        const test::output_memory before = test::copy_outputs(problem);
        const std::int64_t living = test::living_allocations();
        has_failed = run_failing(problem, which.threads, number, onwards);
        EXPECT_EQ(test::living_allocations(), living) << "leaked after allocation " << number;
        if (has_failed) {
            EXPECT_EQ(test::copy_outputs(problem), before)
                << "outputs were written after allocation " << number;
        }
        compile_and_execute(problem, which.threads);
        EXPECT_EQ(test::compare(problem, wanted, before), "") << "after allocation " << number;
    }
    RecordProperty("allocations", std::to_string(number - 1));
    EXPECT_GE(number, 4) << "compile and execute have at least 3 allocations";
}

INSTANTIATE_TEST_SUITE_P(
    calls, failing_attention,
    testing::Combine(testing::Values(scenario{"plain", plain, 0}, scenario{"loop", plain, 3},
                                     scenario{"with_everything", with_everything, 4},
                                     scenario{"decoding", decoding, 5}),
                     testing::Bool()),
    [](const auto& tested) {
        return std::string(std::get<0>(tested.param).name) +
               (std::get<1>(tested.param) ? "_later_fail_too" : "");
    });

} // namespace
} // namespace maskwise
