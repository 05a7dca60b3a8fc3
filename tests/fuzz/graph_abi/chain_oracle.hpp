#pragma once

#include "chain_memory.hpp"
#include "chain_run.hpp"

#include "support/grid.hpp"

#include <cstddef>
#include <map>
#include <string>

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
    // Of a row that is masked whole SoftMax makes NaN, and oneDNN's reference code zeros.
    exact_tensors with_nans_, with_zeros_;
};

} // namespace maskwise::fuzz
