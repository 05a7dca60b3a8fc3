#pragma once

#include "data/tensor.hpp"

#include <string>

namespace maskwise::bench {

// What a boolean tensor holds. The last two dims are rows (queries) and columns (keys).
//   random   each element by itself, half of them true
//   causal   true where column <= row + (columns - rows): bottom-right aligned
//   padding  true for the first columns of each row; the length is drawn per outer index
//   ones, zeros
//   runs     stretches of equal values, 1 to 1000 long
// With `any_true_byte` a true is any byte but 0, not only 1. Throws input_error on another word.
tensor make_mask(const std::string& kind, const dims& shape, bool any_true_byte,
                 std::uint64_t seed);

} // namespace maskwise::bench
