#pragma once

#include "base/cpu.hpp"
#include "jit/expression_code.hpp"
#include "support/case_generator.hpp"

#include <gtest/gtest.h>

namespace maskwise::test {

// How one compiled expression is tried: sizes, which inputs step along the row, how dst is written.
struct trial {
    std::vector<column_class> inputs;
    store_policy stores = store_policy::plain;
    std::int64_t rows = 1;
    std::int64_t columns = 1;
    int in_place = -1; // the input that dst is, too
};

// The instruction sets that this machine can run expressions on.
std::vector<isa> jit_targets();

// Random elements of the type as its bits: any pattern, special values, and ordinary numbers.
std::uint32_t draw_element(generator& random, data_type type);

// Compiles the expression and runs it once on random elements between pages that may not be
// touched, then compares dst's elements with the oracle, and all bytes between dst's rows with what
// they were.
testing::AssertionResult try_expression(generator& random, const jit::expression& what,
                                        const trial& how, isa target);

} // namespace maskwise::test
