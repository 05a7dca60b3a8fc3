// Random Selects of every layout against the byte-moving reference, for every instruction set of
// this machine.

#include "checked_run.hpp"

#include "plan/plan_data.hpp"

#include <gtest/gtest.h>

#include <map>

namespace maskwise::test {
namespace {

void check_case(std::uint64_t seed, isa target, std::int64_t most_elements) {
    generator random(seed);
    const select_case layouts = make_case(random, most_elements);
    SCOPED_TRACE("MASKWISE_TEST_SEED for this case: " + std::to_string(seed) + '\n' +
                 to_string(layouts));
    ASSERT_EQ(checked_run(random, layouts, target), "");
}

// Sanitizers make each case ten and more times slower; they look for what every case shows.
constexpr std::uint64_t thinned(std::uint64_t cases) {
#if defined(__SANITIZE_THREAD__)
    return cases / 20 + 2;
#elif defined(__SANITIZE_ADDRESS__)
    return cases / 4;
#else
    return cases;
#endif
}

class oracle : public ::testing::TestWithParam<isa> {
protected:
    void check(std::uint64_t cases, std::int64_t most_elements) const {
        for (std::uint64_t i = 0; i < thinned(cases) && !HasFatalFailure(); ++i)
            check_case(base_seed() + i, GetParam(), most_elements);
    }
};

TEST_P(oracle, small_shapes) {
    check(10000, 3000);
}

TEST_P(oracle, shapes_of_many_tiles) {
    check(1500, 100000);
}

// Large enough for run_select to use several threads.
TEST_P(oracle, shapes_in_parallel) {
    check(60, 4000000);
}

// The cases above would prove little if they missed a way in which tiles are made.
TEST(oracle_coverage, every_form_and_access_occurs) {
    std::map<std::string, int> seen;
    for (std::uint64_t i = 0; i < 1500; ++i) {
        generator random(base_seed() + i);
        const auto plan = build_plan(describe(make_case(random, 100000)), isa::scalar, 0);
        ++seen[plan->tile.form == tile_form::flat ? "flat" : "rows"];
        seen["split columns"] += plan->column_grid >= 0;
        seen["split rows"] += plan->row_grid >= 0;
        seen["constant cond"] += plan->cond_is_constant && plan->packs;
        for (std::size_t o = 0; o < operand_count; ++o)
            ++seen[std::to_string(o) + '/' +
                   std::to_string(static_cast<int>(plan->access[o].kind))];
    }
    for (const char* what : {"flat", "rows", "split columns", "split rows", "constant cond"})
        EXPECT_GE(seen[what], 20) << what;
    for (const access_kind kind : {access_kind::direct, access_kind::repeat, access_kind::gather,
                                   access_kind::splat, access_kind::transpose})
        for (const std::size_t o : {op_cond, op_src_0, op_src_1})
            EXPECT_GE(seen[std::to_string(o) + '/' + std::to_string(static_cast<int>(kind))], 5);
    EXPECT_GE(
        seen[std::to_string(op_dst) + '/' + std::to_string(static_cast<int>(access_kind::scatter))],
        20);
}

INSTANTIATE_TEST_SUITE_P(every_isa, oracle, ::testing::ValuesIn(supported_isas(native_cpu())),
                         [](const auto& parameter) {
                             return std::string(maskwise::to_string(parameter.param));
                         });

} // namespace
} // namespace maskwise::test
