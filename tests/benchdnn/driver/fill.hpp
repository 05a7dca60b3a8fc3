#pragma once

// Inputs as oneDNN's driver fills them, so that sums of products are exact in any order and a
// reference may demand equality. docs/harness.md lists the values.

#include "data/filler.hpp"

namespace maskwise::bench::driver {

// Values for every graph input of `g`, which has known shapes. `values` holds the harness's values,
// which stay for ops without rules of their own (element-wise functions, statistics of older
// graphs).
tensor_map fill_inputs(const graph& g, tensor_map values);

} // namespace maskwise::bench::driver
