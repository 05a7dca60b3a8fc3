#pragma once

#include "onednn/partition/claim.hpp"

namespace maskwise::onednn {

// Records a claim on a partition of `graph` if it is a Select alone or has a chain of rows around a
// Select. A verbose line reports the claim, or why there is none. Throws std::bad_alloc.
void claim_partition(const graph_record& graph, abi::partition partition);

// The same for a partition of a single operator without a graph.
void claim_single_op(const op_record& op, int engine_kind, abi::partition partition);

// Records the claim on the partition of a merged group.
void claim_merged(const graph_record& graph, const std::shared_ptr<const merged_group>& group,
                  abi::partition partition);

} // namespace maskwise::onednn
