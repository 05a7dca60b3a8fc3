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

// One library's results for a chain: the tensors with their layouts and bytes, or why the run
// failed.
struct chain_result {
    std::string refusal; // the status or exception that ended the run; empty if all partitions ran
    std::string fault;   // a violation of the API; empty if there is none
    std::map<std::size_t, logical_tensor> tensors;
    std::map<std::size_t, std::vector<std::byte>> bytes;
    std::set<std::size_t> written; // tensors that partitions computed
    std::set<std::size_t> owned;   // tensors that Maskwise computed
    // Counts of Maskwise's partitions of several operators. merged: without a MatMul; the plugin
    // merged the operators. composites: with a MatMul; oneDNN alone has the partition, too.
    int merged = 0, composites = 0;
};

using tensor_bytes = std::map<std::size_t, std::vector<std::byte>>;

// Draws numbers within the bounds in `chain` for each input. Sometimes one input has NaNs. `later`:
// see chain_writer.
tensor_bytes draw_inputs(generator& random, generator& later, const chain_description& chain);

// Compiles and executes each of the session's partitions.
chain_result run_chain(const session& side, const chain_description& chain,
                       const tensor_bytes& inputs);

// Runs the partition of `side` that computes tensor `id`, on the inputs of `plugin`. `other` is a
// result of `side`. Sets `refusal` if an input is not dense and has another layout in `other`.
chain_result repeat_partition(const session& side, const chain_description& chain,
                              const chain_result& plugin, const chain_result& other,
                              std::size_t id);

// Whether MASKWISE_FUZZ_FAULT plants this fault. Tests of the target set the variable.
bool planted(const char* fault);

// Returns "" if all elements with the same index differ by at most `tolerance` or are both NaN.
std::string difference(const laid_out& a, const laid_out& b, double tolerance);

} // namespace maskwise::fuzz
