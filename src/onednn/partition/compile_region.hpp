#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/executable.hpp"

#include <cstddef>
#include <memory>

namespace maskwise::onednn {

// Both print a verbose line with the partition's id for each form that they try.

// Compiles a silent claim with a block. Null if no form of the block compiles: oneDNN then compiles
// the whole partition.
std::unique_ptr<executable> compile_region(std::size_t partition, const row_region& region,
                                           const compile_request& request);

// Compiles a merged group. The plugin has promised it for every shape and layout, so if rows cannot
// run it, oneDNN runs operator by operator. Throws if oneDNN cannot compile an operator either, and
// argument_error if types differ from add_op.
std::unique_ptr<executable> compile_merged_region(std::size_t partition, const row_region& recorded,
                                                  compile_request request);

} // namespace maskwise::onednn
