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

// Values for every graph input, by id, dense, of the declared types. Attention graphs get what
// they mean: masks causal or padding, a scale near 1/sqrt(head), the masked value -inf where the
// SoftMax takes it, sequence lengths where row indices are shifted. `g` has known shapes.
tensor_map fill_inputs(const graph& g, const fill_policy& policy);

} // namespace maskwise::bench
