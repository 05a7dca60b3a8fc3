#pragma once

// Fills inputs as oneDNN's driver does. With these inputs, sums of products are exact in any order,
// so results can be compared for equality.

#include "data/filler.hpp"

namespace maskwise::bench::driver {

// `values` holds the harness's values of every graph input of `g`. Returns `values`, with the
// driver's values where the driver has a rule. An input of Exp, for example, has no rule. All
// shapes must be known.
tensor_map fill_inputs(const graph& g, tensor_map values);

} // namespace maskwise::bench::driver
