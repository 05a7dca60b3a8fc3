#pragma once

#include "onednn/record/claim.hpp"

#include <cstddef>
#include <map>
#include <memory>

namespace maskwise::onednn {

// By operator, whether the real library runs it as a partition of its own. Of those that it does
// not run only Selects are here.
using single_op_map = std::map<std::size_t, bool>;

using group_map = std::map<std::size_t, std::shared_ptr<const merged_group>>; // by operator

// The groups of single operators in a graph. Throws std::bad_alloc, and invalid_argument where a
// tensor cannot be read.
group_map find_merged_groups(const graph_record& record, const single_op_map& single);

} // namespace maskwise::onednn
