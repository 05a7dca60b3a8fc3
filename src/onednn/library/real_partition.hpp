#pragma once

#include "onednn/library/abi.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::onednn {

// Questions to the real library about one of its partitions; empty where it refuses. The handle
// stays the caller's. All throw std::bad_alloc.
std::vector<std::size_t> op_ids(abi::partition partition);
std::vector<abi::logical_tensor> input_ports(abi::partition partition);
std::vector<abi::logical_tensor> output_ports(abi::partition partition);

bool is_supported(abi::partition partition);

std::size_t partition_count(abi::const_graph graph); // 0 where it is not finalized

std::vector<std::size_t> ids_of(const std::vector<abi::logical_tensor>& tensors);

} // namespace maskwise::onednn
