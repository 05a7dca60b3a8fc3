#pragma once

// Inputs as oneDNN's driver fills them, so that sums of products are exact in any order and a
// reference may demand equality. docs/harness.md lists the values.

#include "data/filler.hpp"

namespace maskwise::bench::driver {

// Values for every graph input of `g`, which has known shapes. `own` are the harness's, kept where
// an op is filled as no other (element-wise functions, statistics of older graphs).
tensor_map fill_inputs(const graph& g, tensor_map own);

} // namespace maskwise::bench::driver
