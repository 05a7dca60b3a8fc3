#pragma once

#include "model/graph.hpp"

namespace maskwise::bench {

// How far a tensor may be from the oracle's. docs/harness.md states the rules and why.
struct tolerance {
    bool exact = false;
    double relative = 0.0;     // of max(|expected|, root mean square of the tensor)
    double absolute = 0.0;     // integers: units
    bool norm_allowed = false; // one point in 1024 may miss, if the whole tensor is near in L2
};

// `bits_moved`: the oracle only moved elements into this tensor.
tolerance tolerance_for(const graph& g, const logical_tensor& t, bool bits_moved);

bool mixes_16_bits_and_integers(const graph& g);

} // namespace maskwise::bench
