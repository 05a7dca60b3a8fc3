#pragma once

#include "onednn/library/abi.hpp"
#include "onednn/record/op_record.hpp"

namespace maskwise::onednn {

// Makes the operator once more, in a graph of the real library's, with the id, attributes and
// tensors that the client gave it. Throws invalid_argument where that library refuses.
void add_recorded(abi::graph graph, const op_record& record);

} // namespace maskwise::onednn
