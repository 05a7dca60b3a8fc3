#pragma once

#include "onednn/partition/claim.hpp"

namespace maskwise::onednn {

// Looks at a partition that the real library has made of `graph` and records a claim on it where it
// is a Select alone, or holds a chain of rows around one. One verbose line tells of the claim, or
// why there is none. Throws std::bad_alloc.
void claim_partition(const graph_record& graph, abi::partition partition);

// The same for a partition made of a single operator without a graph.
void claim_single_op(const op_record& op, int engine_kind, abi::partition partition);

// The claim of a partition that stands for a merged group.
void claim_merged(const graph_record& graph, const std::shared_ptr<const merged_group>& group,
                  abi::partition partition);

} // namespace maskwise::onednn
