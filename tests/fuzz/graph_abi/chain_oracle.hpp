#pragma once

#include "chain_run.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace maskwise::fuzz {

// The first tensor, in the order in which they are made, that is not as near as the chain's bounds
// ask for to what the operators compute, one by one and in double precision. It shares nothing with
// either library.
struct wrong_tensor {
    std::size_t id = 0;
    std::string what;
};
std::optional<wrong_tensor> compare_exactly(const chain_result& made,
                                            const chain_description& chain,
                                            const tensor_bytes& inputs);

} // namespace maskwise::fuzz
