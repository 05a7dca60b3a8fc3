#pragma once

#include "onednn/partition/claim.hpp"

namespace maskwise::onednn {

// Claims a partition of `graph` if it is a Select alone, attention with statistics, gradients of
// attention, or has a row chain around a Select. Does not claim a row chain that oneDNN computes as
// fast as Maskwise. Verbose lines report a claimed Select, and the reason if a partition with a
// Select is not claimed. Throws std::bad_alloc.
void claim_partition(const graph_record& graph, abi::partition partition);

// Claims a partition created from one operator, without a graph, if the operator is a Select and
// the engine is the CPU.
void claim_single_op(const op_record& op, int engine_kind, abi::partition partition);

// Claims the partition that represents a merged group.
void claim_merged(const graph_record& graph, const std::shared_ptr<const merged_group>& group,
                  abi::partition partition);

} // namespace maskwise::onednn
