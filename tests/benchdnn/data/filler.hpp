#pragma once

#include "data/tensor.hpp"

#include <map>
#include <string>

namespace maskwise::bench {

using tensor_map = std::map<std::size_t, tensor>;

struct fill_policy {
    bool any_bits = false;      // floats of any bit pattern (only where bits_only(g) holds)
    bool any_true_byte = false; // a true cond is any byte but 0
    std::string mask = "auto";
    std::uint64_t seed = 1;
};

// True when every op only moves elements, so that any bit pattern has an exact answer.
bool bits_only(const graph& g);

// Values for every graph input, by id, dense, in the declared types. Attention graphs get typical
// values: causal or padding masks, a scale near 1/sqrt(head), -inf as fill if the SoftMax accepts
// it, and sequence lengths where row indices are shifted. `g` must have known shapes.
tensor_map fill_inputs(const graph& g, const fill_policy& policy);

} // namespace maskwise::bench
