#pragma once

#include "data/tensor.hpp"

#include <map>
#include <string>

namespace maskwise::bench {

using tensor_map = std::map<std::size_t, tensor>;

struct fill_policy {
    bool any_bits = false;      // floats have any bit pattern; for graphs with bits_only(g)
    bool any_true_byte = false; // true in a mask is any nonzero byte, not only 1
    std::string mask = "auto";
    std::uint64_t seed = 1;
};

// Whether every op only moves elements, so that results are exact for any bit pattern.
bool bits_only(const graph& g);

// Returns dense values of every graph input, by id, in the declared types. Attention graphs get
// typical values: causal or padding masks, scale 1/8, and -inf for masked scores. If -inf could
// make a row NaN, masked scores get -10000. If a causal mask shifts the row index, Add gets the
// number of keys, and Subtract gets the number of queries. Every shape of `g` must be known.
tensor_map fill_inputs(const graph& g, const fill_policy& policy);

} // namespace maskwise::bench
