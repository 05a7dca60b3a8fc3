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

// What the operators compute, one by one and in double precision, and how sure each number is where
// NaNs are.
struct exact_tensor {
    test::grid values, certainty;
};
constexpr double sure = 0;
constexpr double after_soft_max = 1; // of a row with a NaN, of which code of oneDNN's makes numbers
constexpr double open = 2; // a NaN met an operator of which the definition does not mention it

using exact_tensors = std::map<std::size_t, exact_tensor>;

// What a mask leaves open.
struct masked_rule {
    bool makes_zeros; // SoftMax of a row that is masked whole: NaN, and zeros by oneDNN's reference
    bool skips_values; // a NaN of a value that has no weight: NaN, and left out where a tile is
};

// Every tensor of a chain. It shares nothing with either library.
class chain_oracle {
public:
    chain_oracle(const chain_description& chain, const tensor_bytes& inputs);

    // Empty where every element of the tensor is as near as the chain's bounds ask for, or
    // is no NaN after SoftMax, which sets `loses_nans`.
    std::string find_wrong(const laid_out& made, bool& loses_nans) const;

    // What follows is computed from this tensor as it was made.
    void take(const laid_out& made);

private:
    void compute();

    const chain_description& chain_;
    exact_tensors given_; // inputs, and what was taken
    std::array<std::pair<masked_rule, exact_tensors>, 4> by_rule_{
        {{{false, false}, {}}, {{true, false}, {}}, {{false, true}, {}}, {{true, true}, {}}}};
};

} // namespace maskwise::fuzz
