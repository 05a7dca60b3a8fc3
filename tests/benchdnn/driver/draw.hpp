#pragma once

// Draws random numbers with the generator, the seeds and the order of oneDNN's driver, so that a
// case gets the driver's values.

#include "model/graph.hpp"

#include <vector>

namespace maskwise::bench::driver {

using numbers = std::vector<double>;

// A MatMul's types, and the number of products in each sum.
struct product {
    data_type source;
    data_type weights;
    data_type result;
    std::int64_t depth;
};
// Draws operand `slot`: integers in a range that depends on the types. With a larger `depth`, more
// elements of the first operand are 0, so that sums of products stay exact in the result's type.
numbers draw_operand(const product& p, std::size_t slot, std::size_t count);

// Draws an input of a binary operator or a Select. `argument` is 1 or 2 for a source, 3 for cond.
numbers draw_binary(std::size_t argument, data_type type, std::size_t count);

// Draws an input of StaticTranspose or StaticReshape.
numbers draw_moved(data_type type, std::size_t count);

// Draws each value from the set.
numbers draw_from(const numbers& set, std::size_t count);

} // namespace maskwise::bench::driver
