#pragma once

#include "chain.hpp"
#include "session.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace maskwise::fuzz {

// What one side made of a chain: the tensors as they were laid out and filled, or why not.
struct chain_result {
    std::string refusal; // what oneDNN may answer: a status or an exception; empty: all was run
    std::string fault;   // what no library may do
    std::map<std::size_t, logical_tensor> tensors;
    std::map<std::size_t, std::vector<std::byte>> bytes;
    std::set<std::size_t> selected; // tensors that partitions with a Select in them make: the
                                    // others are oneDNN's on both sides
    int merged = 0;                 // partitions of several operators
};

using tensor_bytes = std::map<std::size_t, std::vector<std::byte>>;

// Numbers of the bounds in `chain` for each tensor that the client fills.
tensor_bytes draw_inputs(generator& random, const chain_description& chain);

// Compiles and executes each of the session's partitions.
chain_result run_chain(const session& side, const chain_description& chain,
                       const tensor_bytes& inputs);

// Empty where what both sides computed is as near as the chain's bounds ask for.
std::string compare(const chain_result& own, const chain_result& other,
                    const chain_description& chain);

} // namespace maskwise::fuzz
