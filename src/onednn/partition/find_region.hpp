#pragma once

#include "onednn/record/claim.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

// A chain of rows in the operators of a partition, given in topological order. Nothing, and the
// reason, where there is none or where this oneDNN is as fast alone. Throws std::bad_alloc.
std::optional<row_region> find_region(const graph_settings& settings, op_list&& records,
                                      std::vector<std::size_t>&& output_ids, std::string& reason);

} // namespace maskwise::onednn
