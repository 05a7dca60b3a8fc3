#pragma once

#include "onednn/partition/claim.hpp"

namespace maskwise::onednn {

// Records a claim on a partition of `graph` if the partition is a Select alone, has a row chain
// around a Select, is attention with statistics, or computes gradients of attention. Records no
// claim on a row chain that oneDNN computes as fast. Verbose lines report a claimed Select, and why
// a partition with a Select is not claimed. Throws std::bad_alloc.
void claim_partition(const graph_record& graph, abi::partition partition);

// Claims a partition that was created from one operator without a graph, if the operator is a
// Select and the engine is the CPU.
void claim_single_op(const op_record& op, int engine_kind, abi::partition partition);

// Records the claim on the partition of a merged group.
void claim_merged(const graph_record& graph, const std::shared_ptr<const merged_group>& group,
                  abi::partition partition);

} // namespace maskwise::onednn
