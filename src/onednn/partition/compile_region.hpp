#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/executable.hpp"

#include <cstddef>
#include <memory>

namespace maskwise::onednn {

// Both print verbose lines of the forms that they try, with the id of the partition.

// Compiles a silent claim with a block. Null where that cannot be had: oneDNN then compiles the
// whole partition.
std::unique_ptr<executable> compile_region(std::size_t partition, const row_region& region,
                                           const compile_call& call);

// Compiles a merged group, which has been promised for every shape, type and layout: if rows
// cannot run it, oneDNN runs operator by operator. Throws if oneDNN cannot compile an operator
// either.
std::unique_ptr<executable> compile_merged_region(std::size_t partition, const row_region& recorded,
                                                  const compile_call& call);

} // namespace maskwise::onednn
