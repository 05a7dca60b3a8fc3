#pragma once

// The driver's random numbers: the same generator, seeds and order, so that a case meets here the
// values that it meets there.

#include "model/graph.hpp"

#include <vector>

namespace maskwise::bench::driver {

using numbers = std::vector<double>;

// Operands of a MatMul, by slot: integers in a range that its types allow, the first operand so
// sparse that sums of `depth` products are exact in the result's type.
struct product {
    data_type source;
    data_type weights;
    data_type result;
    std::int64_t depth;
};
numbers draw_operand(const product& p, std::size_t slot, std::size_t count);

// For a binary operator, by its argument: 1 and 2, or 3 for the condition of a Select.
numbers draw_binary(std::size_t argument, data_type type, std::size_t count);

// For an operator that moves elements.
numbers draw_moved(data_type type, std::size_t count);

numbers draw_from(const numbers& set, std::size_t count);

} // namespace maskwise::bench::driver
