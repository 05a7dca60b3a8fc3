#pragma once

#include "chain_memory.hpp"
#include "chain_run.hpp"

#include "support/grid.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace maskwise::fuzz {

// The operators' results, computed one by one in double precision, and how certain each number is
// if there are NaNs.
struct exact_tensor {
    test::grid values, certainty;
};
constexpr double sure = 0;
// in a row with a NaN, which some oneDNN code turns into numbers
constexpr double after_soft_max = 1;
constexpr double open = 2; // a NaN met an operator whose definition does not mention NaN

using exact_tensors = std::map<std::size_t, exact_tensor>;

// Results that the definition of a mask leaves open.
struct masked_rule {
    bool makes_zeros;  // SoftMax of a fully masked row is NaN; zeros in oneDNN's reference
    bool skips_values; // a NaN value with weight 0 gives NaN, unless its tile is skipped
};

// Every tensor of a chain. It shares nothing with either library.
class chain_oracle {
public:
    chain_oracle(const chain_description& chain, const tensor_bytes& inputs);

    // Empty if every element of the tensor is within the chain's bounds. A number instead of NaN
    // after SoftMax is accepted and sets `loses_nans`.
    std::string find_wrong(const laid_out& problem, bool& loses_nans) const;

    // Later values are computed from this tensor as the library computed it.
    void take(const laid_out& problem);

private:
    void compute();

    const chain_description& chain_;
    exact_tensors known_; // inputs, and tensors as the library computed them
    std::array<std::pair<masked_rule, exact_tensors>, 4> by_rule_{
        {{{false, false}, {}}, {{true, false}, {}}, {{false, true}, {}}, {{true, true}, {}}}};
};

} // namespace maskwise::fuzz
