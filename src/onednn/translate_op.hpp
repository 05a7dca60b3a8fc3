#pragma once

#include "graph/op.hpp"
#include "onednn/records.hpp"

namespace maskwise::onednn {

// A recorded operator in Maskwise's words; kinds that the matcher does not tell apart are `other`.
// Throws invalid_argument for a tensor whose rank is outside -1..12.
graph::op translate(const op_record& record);

} // namespace maskwise::onednn
