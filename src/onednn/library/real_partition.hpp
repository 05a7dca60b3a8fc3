#pragma once

#include "onednn/library/abi.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::onednn {

// Ids in the real library's partition; an empty list if the real library returns an error. The
// caller still owns the handle. Functions that return a list throw std::bad_alloc.
std::vector<std::size_t> op_ids(abi::partition partition);
std::vector<std::size_t> input_ids(abi::partition partition); // of tensors
std::vector<std::size_t> output_ids(abi::partition partition);

bool is_supported(abi::partition partition);

std::size_t partition_count(abi::const_graph graph); // 0 after an error

std::vector<std::size_t> ids_of(const std::vector<abi::logical_tensor>& tensors);

} // namespace maskwise::onednn
