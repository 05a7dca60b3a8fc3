#pragma once

#include "chain.hpp"
#include "chain_memory.hpp"
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
    std::set<std::size_t> written; // tensors of the partitions that were run
    std::set<std::size_t> owned;   // of these, tensors that Maskwise made
    // Partitions of several operators that are Maskwise's: those that oneDNN does not have, and its
    // own.
    int merged = 0, composites = 0;
};

using tensor_bytes = std::map<std::size_t, std::vector<std::byte>>;

// Numbers of the bounds in `chain` for each tensor that the client fills; now and then one of them
// has NaNs. `later`: see chain_writer.
tensor_bytes draw_inputs(generator& random, generator& later, const chain_description& chain);

// Compiles and executes each of the session's partitions.
chain_result run_chain(const session& side, const chain_description& chain,
                       const tensor_bytes& inputs);

// What `own` has, with the partition that makes the tensor run again, by `side`, where the
// partition's inputs are dense or lie as in `other`, which that side made; else the refusal says
// so.
chain_result repeat_partition(const session& side, const chain_description& chain,
                              const chain_result& own, const chain_result& other, std::size_t id);

// Faults that the target's tests plant.
bool planted(const char* fault);

// Empty where all elements of the same index are at most `tolerance` apart, or both NaN.
std::string difference(const laid_out& a, const laid_out& b, double tolerance);

} // namespace maskwise::fuzz
