#pragma once

#include "onednn/partition/onednn_subgraph.hpp"
#include "onednn/record/claim.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace maskwise::onednn {

// What every way to run a region asks of the client's tensors.

// Values inside the partition have the types of add_op; with others oneDNN would choose its own.
// Throws invalid_argument where `given` has another.
void require_types(const row_region& region, const std::vector<abi::logical_tensor>& given);

// oneDNN may survive an output that is left out or open; a region that Maskwise runs needs each.
// Throws invalid_argument.
void require_outputs(const row_region& region, const std::vector<abi::logical_tensor>& given);

// The engine's description of an input. Throws invalid_argument where it is not given or readable.
tensor_desc describe_input(const std::vector<abi::logical_tensor>& given, std::size_t id);

// Throws invalid_argument where a number that moves the causal boundary is not one i32.
void require_boundary(const graph::row_chain& chain, const std::vector<abi::logical_tensor>& given);

// How far the boundary is moved in this execution; nothing where a number has no memory.
std::optional<std::int64_t> boundary_offset(const graph::row_chain& chain,
                                            const tensor_lookup& find);

} // namespace maskwise::onednn
