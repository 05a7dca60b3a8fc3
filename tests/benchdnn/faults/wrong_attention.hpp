#pragma once

// Attention that rounds elsewhere than the graph says: what a fault puts in place of a result.

#include <cstddef>
#include <vector>

namespace maskwise::bench {

// Dense tensors of {heads, rows, depth}.
struct causal_attention {
    std::vector<double> query, key, value;
    double factor;
    std::size_t heads, rows, depth;
};

// Divides by the sum of the weights after the second product; with `rounds_weights` these are
// rounded to bf16 before.
std::vector<double> attend_dividing_late(const causal_attention& a, bool rounds_weights);

} // namespace maskwise::bench
