#pragma once

#include "onednn/partition/assembly.hpp"

#include <optional>

namespace maskwise::onednn {

// Adds operators of a region that stay oneDNN's, as a graph of their own with the same ids and
// attributes. The real library partitions and compiles it; each partition becomes a segment. A
// Select that is a partition alone is Maskwise's: not every oneDNN has one, and that of 3.7 makes
// NaN of masked infinities. `in_layout` asks for one value in its layout. Throws argument_error if
// the real library does not take, support or compile the operators.
void add_onednn_part(assembly& target, const op_list& ops, const graph_settings& settings,
                     abi::engine engine,
                     const std::optional<logical_tensor>& in_layout = std::nullopt);

} // namespace maskwise::onednn
