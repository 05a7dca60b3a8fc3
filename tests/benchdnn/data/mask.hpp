#pragma once

#include "data/tensor.hpp"

#include <string>

namespace maskwise::bench {

// Makes a boolean tensor. The last two dims are rows (queries) and columns (keys). Kinds:
//   random   independent elements, half of them true
//   causal   true where column <= row + (columns - rows): bottom-right aligned
//   padding  true for the first columns of each row; the length is drawn per outer index
//   ones, zeros
//   runs     runs of equal values, 1 to 1000 long
// With `any_true_byte`, true is any nonzero byte, not only 1. Throws input_error for other kinds.
tensor make_mask(const std::string& kind, const dims& shape, bool any_true_byte,
                 std::uint64_t seed);

} // namespace maskwise::bench
