#pragma once

#include "chain_run.hpp"

#include <string>

namespace maskwise::fuzz {

// Empty where what one side made is as near as the chain's bounds ask for to what the operators
// compute, one by one and in double precision. It shares nothing with either library.
std::string compare_exactly(const chain_result& made, const chain_description& chain,
                            const tensor_bytes& inputs);

} // namespace maskwise::fuzz
