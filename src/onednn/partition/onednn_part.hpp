#pragma once

#include "onednn/partition/assembly.hpp"

#include <optional>

namespace maskwise::onednn {

// Adds operators of a region that oneDNN runs, as a separate graph with the same ids and
// attributes. The real library partitions and compiles it; each partition becomes a segment.
// Maskwise runs a Select that is a partition alone: not every oneDNN supports one, and oneDNN 3.7
// computes NaN for masked infinities. `in_layout` asks for one value in its layout. Throws
// argument_error if the real library does not accept, support or compile the operators.
void add_onednn_part(assembly& target, const op_list& ops, const graph_settings& settings,
                     abi::engine engine,
                     const std::optional<logical_tensor>& in_layout = std::nullopt);

} // namespace maskwise::onednn
