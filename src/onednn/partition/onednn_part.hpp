#pragma once

#include "onednn/partition/assembly.hpp"

#include <optional>

namespace maskwise::onednn {

// Adds the operators of a region that oneDNN runs. The real library partitions and compiles them as
// a separate graph with the same ids and attributes. Each partition becomes a segment. If types and
// layouts permit, Maskwise runs a Select that is a partition alone. Not every oneDNN supports such
// a partition, and oneDNN 3.7 computes NaN for masked infinities. If `in_layout` is set, oneDNN
// writes the output with the id of `in_layout` in the layout of `in_layout`. Throws argument_error
// for a host scalar, for a partition with too many tensors, and if the real library does not accept
// or support the operators.
void add_onednn_part(assembly& target, const op_list& ops, const graph_settings& settings,
                     abi::engine engine,
                     const std::optional<logical_tensor>& in_layout = std::nullopt);

} // namespace maskwise::onednn
