#pragma once

#include "jit/expression_run.hpp"

namespace maskwise::test {

// A valid expression of every kind of node, now and then of so many values that it may be refused.
jit::expression draw_expression(generator& random);

// Sizes, classes of columns and stores to try it with.
trial draw_trial(generator& random, const jit::expression& what);

} // namespace maskwise::test
