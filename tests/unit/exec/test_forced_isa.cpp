// ctest runs this test once for each tested cap (MASKWISE_MAX_ISA or ONEDNN_MAX_CPU_ISA).
// MASKWISE_TEST_EXPECT is the expected instruction set, or "refused". Without this variable, the
// test expects the default: the highest set except neon_bf16.

#include "base/error.hpp"
#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace maskwise {
namespace {

select_desc vector_of(std::int64_t n) {
    return {dense_desc(data_type::boolean, {n}), dense_desc(data_type::f32, {n}),
            dense_desc(data_type::f32, {n}), dense_desc(data_type::f32, {n})};
}

std::string expected() {
    const char* text = std::getenv("MASKWISE_TEST_EXPECT");
    if (text != nullptr) return text;
    std::vector<isa> by_default = supported_isas(native_cpu());
    std::erase(by_default, isa::neon_bf16); // chosen by name only
    return std::string(to_string(by_default.back()));
}

bool is_supported(const std::string& name) {
    for (const isa value : supported_isas(native_cpu()))
        if (to_string(value) == name) return true;
    return false;
}

TEST(forced_isa, decides_which_kernel_runs) {
    if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr && !is_supported(expected()))
        GTEST_SKIP() << "this CPU has no " << expected() << ", so the cap has no effect";
    if (expected() == "refused" || !is_supported(expected())) {
        EXPECT_THROW(active_isa(), argument_error);
        EXPECT_THROW(active_isa(), argument_error); // throws again
        EXPECT_THROW(make_select_plan(vector_of(100)), argument_error);
        return;
    }
    const auto plan = make_select_plan(vector_of(100));
    EXPECT_EQ(to_string(plan->target), expected());
    EXPECT_TRUE(test::has(to_string(*plan), {"isa=" + expected()}));
    // The plan's kernel is in every table with the same base, and in no other table.
    const isa base = kernel_table_for(plan->target).base;
    for (const kernel_table* table : kernel_tables()) {
        const bool chosen = table->base == base;
        EXPECT_EQ(find_kernel(table->selects, plan->key).run == plan->run, chosen)
            << to_string(table->target);
    }
}

} // namespace
} // namespace maskwise
