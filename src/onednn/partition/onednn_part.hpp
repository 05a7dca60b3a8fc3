#pragma once

#include "onednn/partition/assembly.hpp"

#include <optional>

namespace maskwise::onednn {

// Operators of a region that stay oneDNN's, as a graph of their own: the same ids and attributes,
// partitioned and compiled by the real library into segments of their own. A Select that it leaves
// alone is Maskwise's here, too: not every oneDNN has one, and that of 3.7 makes NaN of masked
// infinities. One value may be wanted in a layout. Throws argument_error where the real library
// does not take, support or compile the operators.
void add_onednn_part(assembly& to, const op_list& ops, const graph_settings& settings,
                     abi::engine engine,
                     const std::optional<abi::logical_tensor>& in_layout = std::nullopt);

} // namespace maskwise::onednn
