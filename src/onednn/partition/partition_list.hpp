#pragma once

#include "onednn/library/abi.hpp"

#include <span>
#include <vector>

namespace maskwise::onednn {

using partition_list = std::vector<abi::partition>;

// Destroys the handles, forgets their claims and leaves nulls.
void destroy(std::span<abi::partition> partitions);

struct owned_partitions {
    partition_list list;
    ~owned_partitions() { destroy(list); }
};

} // namespace maskwise::onednn
