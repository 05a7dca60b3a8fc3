#pragma once

#include "graph/op.hpp"
#include "onednn/record/graph_record.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace maskwise::onednn {

// The plugin's tensor. oneDNN's, abi::logical_tensor, occurs only at the boundary: in the client's
// arguments, in results for the client, and in calls of the real library.
using graph::logical_tensor;
using tensor_list = std::vector<logical_tensor>;

// The conversions are exact, except that unknown layouts and properties become undef. from_abi
// throws argument_error for a rank outside -1..12.
logical_tensor from_abi(const abi::logical_tensor& tensor);
abi::logical_tensor to_abi(const logical_tensor& tensor);

// The first tensor with that id, or null.
const logical_tensor* find_by_id(const tensor_list& tensors, std::size_t id);

// A recorded operator in Maskwise's terms; operators that the matcher does not tell apart are
// `other`. A rank outside 0..12 counts as unknown. Throws std::bad_alloc.
graph::op translate(const op_record& record);

} // namespace maskwise::onednn
