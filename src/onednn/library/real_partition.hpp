#pragma once

#include "onednn/library/abi.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::onednn {

// Ask the real library about one of its partitions; empty if it refuses. The caller keeps the
// handle. All throw std::bad_alloc.
std::vector<std::size_t> op_ids(abi::partition partition);
std::vector<std::size_t> input_ids(abi::partition partition); // of tensors
std::vector<std::size_t> output_ids(abi::partition partition);

bool is_supported(abi::partition partition);

std::size_t partition_count(abi::const_graph graph); // 0 if it is not finalized

std::vector<std::size_t> ids_of(const std::vector<abi::logical_tensor>& tensors);

} // namespace maskwise::onednn
