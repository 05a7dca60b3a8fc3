#pragma once

#include "onednn/record/claim.hpp"

#include <memory>
#include <vector>

namespace maskwise::onednn {

// After a filter under this policy: the partitions of one operator that the client will get as one,
// so that the count can be told before the partitions are taken. Throws std::bad_alloc.
std::vector<std::shared_ptr<const merged_group>>
find_merged_groups(abi::graph graph, const graph_record& record, int policy);

} // namespace maskwise::onednn
