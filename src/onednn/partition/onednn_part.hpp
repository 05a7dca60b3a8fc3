#pragma once

#include "onednn/partition/assembly.hpp"

#include <optional>

namespace maskwise::onednn {

// Adds operators of a region that oneDNN runs, as a separate graph with the same ids and
// attributes. The real library partitions and compiles this graph; each partition becomes a
// segment. If types and layouts permit, Maskwise runs a Select that is a partition alone, because
// not every oneDNN supports such a partition, and oneDNN 3.7 computes NaN for masked infinities.
// `in_layout` describes one output, which must have this layout. Throws argument_error for a host
// scalar, for a part with too many tensors, and if the real library does not accept or support the
// operators.
void add_onednn_part(assembly& target, const op_list& ops, const graph_settings& settings,
                     abi::engine engine,
                     const std::optional<logical_tensor>& in_layout = std::nullopt);

} // namespace maskwise::onednn
