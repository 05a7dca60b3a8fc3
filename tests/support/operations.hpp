#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace maskwise::test {

// What operators compute, in double precision, for every oracle: nothing of it is shared with src/
// or with oneDNN.
enum class operation {
#define MASKWISE_TEST_OPERATION(name, specified, inputs, value) name,
#include "support/operations.inc"
#undef MASKWISE_TEST_OPERATION
};

// alpha: that of LeakyReLU, the least of Clamp; beta: the most of Clamp.
double compute(operation what, double x, double y = 0, double alpha = 0, double beta = 0);
int input_count(operation what);

// By either of its names, "leaky_relu" and "LeakyReLU".
std::optional<operation> find_operation(std::string_view name);

// SoftMax of `count` numbers in place, `step` apart; returns the logarithm of the sum of
// exponentials. Numbers that are all -infinity become NaN, or zeros.
double soft_max(double* first, std::size_t count, std::size_t step, bool inf_as_zero);

} // namespace maskwise::test
