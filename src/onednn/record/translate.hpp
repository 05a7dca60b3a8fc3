#pragma once

#include "graph/op.hpp"
#include "onednn/record/graph_record.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace maskwise::onednn {

// The plugin's tensor type. Records, the client's arguments and results, and calls of the real
// library use oneDNN's type, abi::logical_tensor.
using graph::logical_tensor;
using tensor_list = std::vector<logical_tensor>;

// Both conversions keep every field that oneDNN reads, except that unknown layouts and properties
// become undef. from_abi throws argument_error for a rank outside -1..12.
logical_tensor from_abi(const abi::logical_tensor& tensor);
abi::logical_tensor to_abi(const logical_tensor& tensor);

// Returns the first tensor with that id, or null.
const logical_tensor* find_by_id(const tensor_list& tensors, std::size_t id);

// Translates a recorded operator to Maskwise's types. Operators unknown to the matcher become
// `other`. A rank outside 0..12 counts as unknown. Throws std::bad_alloc.
graph::op translate(const op_record& record);

} // namespace maskwise::onednn
