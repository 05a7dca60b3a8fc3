#pragma once

#include "onednn/abi.hpp"
#include "onednn/records.hpp"

#include <memory>

namespace maskwise::onednn {

// Looks at one partition that the real library has made of `graph` and, where it is a Select alone,
// records it as Maskwise's. One verbose line says what was claimed or why not. Throws
// std::bad_alloc.
void claim_partition(const graph_record& graph, abi::partition partition);

// The same for a partition made of a single operator without a graph.
void claim_single_op(const op_record& op, int engine_kind, abi::partition partition);

// Whether the real library is newer than the newest whose functions this plugin exports.
bool real_is_newer_than_known();

} // namespace maskwise::onednn
