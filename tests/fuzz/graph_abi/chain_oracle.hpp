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

// An operator's result in double precision, and how certain each number is if there are NaNs.
struct exact_tensor {
    test::grid values, certainty;
};
constexpr double sure = 0;
constexpr double after_soft_max = 1; // a NaN went through SoftMax; oneDNN may return numbers
constexpr double open = 2; // a NaN reached an operator whose definition does not mention NaN

using exact_tensors = std::map<std::size_t, exact_tensor>;

// Rules for results that the definition of a mask leaves open.
struct masked_rule {
    bool makes_zeros;  // SoftMax of a fully masked row is zeros, as in oneDNN's reference; else NaN
    bool skips_values; // a value with weight 0 is skipped, even NaN, as in a skipped tile
};

// Computes every tensor of a chain (a random graph around a Select). Shares no code with the plugin
// or oneDNN.
class chain_oracle {
public:
    chain_oracle(const chain_description& chain, const tensor_bytes& inputs);

    // Returns the fault, or "" if every element is within the chain's tolerance under one of the
    // rules. Accepts a number instead of NaN after SoftMax, and sets `loses_nans`.
    std::string find_wrong(const laid_out& stored, bool& loses_nans) const;

    // Computes later tensors from the library's values of this tensor.
    void assume(const laid_out& stored);

private:
    void compute();

    const chain_description& chain_;
    exact_tensors known_; // inputs, and tensors as the library computed them
    std::array<std::pair<masked_rule, exact_tensors>, 4> by_rule_{
        {{{false, false}, {}}, {{true, false}, {}}, {{false, true}, {}}, {{true, true}, {}}}};
};

} // namespace maskwise::fuzz
