#pragma once

#include "onednn/partition/executable.hpp"
#include "onednn/record/claim.hpp"

#include <cstddef>
#include <memory>

namespace maskwise::onednn {

// Both print the composite's verbose line, with the id of the partition.

// A region that oneDNN compiles as one partition where this throws.
std::unique_ptr<executable> compile_region(std::size_t partition, const row_region& region,
                                           const compile_call& call);

// A merged group has been promised for every shape, type and layout: where rows cannot run, oneDNN
// runs operator by operator. Throws where oneDNN cannot compile an operator either.
std::unique_ptr<executable> compile_merged_rows(std::size_t partition, const merged_group& group,
                                                const compile_call& call);

} // namespace maskwise::onednn
