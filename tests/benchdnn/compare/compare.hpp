#pragma once

#include "compare/tolerance.hpp"
#include "data/tensor.hpp"

#include <string>

namespace maskwise::bench {

struct comparison {
    std::size_t errors = 0;
    std::size_t total = 0;
    std::string first; // the first wrong element: index, expected, got; empty when there is none
    double used = 0;   // of the tolerance, by the element that is furthest off
};

// `got` has the tensor's declared type, `expected` that type or f64 for f32 arithmetic.
comparison compare(const tensor& expected, const tensor& got, const tolerance& allowed);

} // namespace maskwise::bench
