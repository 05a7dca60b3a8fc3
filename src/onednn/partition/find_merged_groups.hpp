#pragma once

#include "onednn/partition/claim.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <set>

namespace maskwise::onednn {

// The operators that the real library runs as partitions of their own.
using single_op_set = std::set<std::size_t>;

using group_map = std::map<std::size_t, std::shared_ptr<const merged_group>>; // by operator

// The groups of single operators in a graph. Throws std::bad_alloc, and argument_error where a
// tensor cannot be read.
group_map find_merged_groups(const graph_record& record, const single_op_set& single);

} // namespace maskwise::onednn
