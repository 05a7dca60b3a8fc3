#pragma once

#include "graph/op.hpp"
#include "onednn/record/op_record.hpp"

namespace maskwise::onednn {

// A recorded operator in Maskwise's words; kinds that the matcher does not tell apart are `other`.
// A rank outside 0..12 counts as unknown. Throws std::bad_alloc.
graph::op translate(const op_record& record);

} // namespace maskwise::onednn
