#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/executable.hpp"

#include <cstddef>
#include <memory>

namespace maskwise::onednn {

// Both functions try gradients, attention and the row chain, in this order. Each attempt prints a
// verbose line with the partition's id.

// Compiles a silent claim. Returns null if nothing compiles; oneDNN then compiles the partition.
std::unique_ptr<executable> compile_region(std::size_t partition, const row_region& region,
                                           const compile_request& request);

// Compiles a merged group. The client sees the group as supported, and oneDNN has no partition for
// the group. So if the row chain does not compile, the group runs operator by operator. Throws if
// oneDNN cannot compile an operator. Throws argument_error if a tensor's type differs from its type
// at add_op. Only the cond of a group that runs operator by operator may differ.
std::unique_ptr<executable> compile_merged_region(std::size_t partition, const row_region& recorded,
                                                  compile_request request);

} // namespace maskwise::onednn
