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

// One side's result of a chain: the tensors with their layouts and bytes, or the reason why there
// are none.
struct chain_result {
    std::string refusal; // oneDNN's status or exception; empty if all partitions ran
    std::string fault;   // a fault that no library may have
    std::map<std::size_t, logical_tensor> tensors;
    std::map<std::size_t, std::vector<std::byte>> bytes;
    std::set<std::size_t> written; // tensors of the partitions that were run
    std::set<std::size_t> owned;   // those of them that Maskwise computed
    // Counts of Maskwise's partitions of several operators. merged: oneDNN alone has no such
    // partition. composites: oneDNN alone has it, too.
    int merged = 0, composites = 0;
};

using tensor_bytes = std::map<std::size_t, std::vector<std::byte>>;

// Random numbers within the bounds in `chain` for each tensor that the client fills. Now and then
// one tensor has NaNs. `later`: see chain_writer.
tensor_bytes draw_inputs(generator& random, generator& later, const chain_description& chain);

// Compiles and executes each of the session's partitions.
chain_result run_chain(const session& side, const chain_description& chain,
                       const tensor_bytes& inputs);

// Runs the partition that computes the tensor again, on `side` and with the inputs of `plugin`. The
// partition's inputs must be dense or have the layouts of `other`, a result of `side`; else
// `refusal` says so.
chain_result repeat_partition(const session& side, const chain_description& chain,
                              const chain_result& plugin, const chain_result& other,
                              std::size_t id);

// Faults that the target's tests plant.
bool planted(const char* fault);

// Empty if all elements with the same index differ by at most `tolerance` or are both NaN.
std::string difference(const laid_out& a, const laid_out& b, double tolerance);

} // namespace maskwise::fuzz
