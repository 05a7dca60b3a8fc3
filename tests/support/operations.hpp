#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace maskwise::test {

// Operators in double precision, for every oracle. The definitions share no code with src/ or
// oneDNN.
enum class operation {
#define MASKWISE_TEST_OPERATION(name, specified, inputs, value) name,
#include "support/operations.inc"
#undef MASKWISE_TEST_OPERATION
};

// alpha: the slope of LeakyReLU, or the lower bound of Clamp. beta: the upper bound of Clamp.
double compute(operation op, double x, double y = 0, double alpha = 0, double beta = 0);
int input_count(operation op);

// Finds an operation by either name: "leaky_relu" or "LeakyReLU".
std::optional<operation> find_operation(std::string_view name);

// SoftMax in place, of `count` numbers with stride `step`. Returns the logarithm of the sum of
// exponentials. If all numbers are -infinity, the results are 0 with `inf_as_zero`, else NaN.
double soft_max(double* first, std::size_t count, std::size_t step, bool inf_as_zero);

} // namespace maskwise::test
