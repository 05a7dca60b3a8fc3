#pragma once

#include "onednn/partition/onednn_subgraph.hpp"
#include "onednn/record/claim.hpp"

#include <cstddef>
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

} // namespace maskwise::onednn
