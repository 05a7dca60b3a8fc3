#pragma once

#include "chain_memory.hpp"
#include "chain_run.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace maskwise::fuzz {

// How sure a number is where NaNs are. `after_soft_max`: a row with a NaN went through SoftMax, of
// which code of oneDNN's makes numbers. `open`: a NaN met an operator whose definition does not
// mention it.
enum class certainty { sure, after_soft_max, open };

// Of what the operators compute, one by one and in double precision.
struct exact_number {
    double value = 0;
    certainty is = certainty::sure;
};

// Row-major.
struct exact_tensor {
    std::vector<std::int64_t> extents;
    std::vector<exact_number> numbers;

    // The element that a result's index reads: aligned at the last dimension, repeated where the
    // extent is 1.
    const exact_number& at(const indices& index) const;
};

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
