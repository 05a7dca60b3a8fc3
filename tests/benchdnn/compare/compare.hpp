#pragma once

#include "data/tensor.hpp"
#include "model/graph.hpp"

#include <string>

namespace maskwise::bench {

// How far a tensor may differ from the oracle's; see docs/harness.md.
struct tolerance {
    bool exact = false;
    double relative = 0.0;     // relative to max(|expected|, root mean square of the tensor)
    double absolute = 0.0;     // in units, for integers
    bool norm_allowed = false; // if the L2 error is small, one element in 1024 may be off by up to
                               // 16 tolerances
};

// `bits_moved`: the oracle only moved elements into this tensor.
tolerance tolerance_for(const graph& g, const logical_tensor& t, bool bits_moved);

bool mixes_16_bits_and_integers(const graph& g);

struct comparison {
    std::size_t errors = 0;
    std::size_t total = 0;
    std::string first; // the first wrong element: index, expected, got; empty if there is none
    double used = 0;   // largest error, in tolerances; if errors are forgiven, L2 error / limit
};

// `got` has the tensor's declared type. `expected` has that type, or f64 for f32 arithmetic.
comparison compare(const tensor& expected, const tensor& got, const tolerance& allowed);

} // namespace maskwise::bench
