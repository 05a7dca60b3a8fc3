#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/compile_call.hpp"

namespace maskwise::onednn {

// Compiles a claimed partition and records the result for the handle. The real library compiles
// silent claims that Maskwise cannot compile, and Selects with types outside the schema. Returns an
// error status for other claims that Maskwise cannot compile. Any thread may call this function.
abi::status compile_partition(const partition_claim& claim, const compile_call& call);

// Lets the real library compile. On success, erases Maskwise's earlier result for the handle.
// Exceptions of the real library pass through.
abi::status leave_to_onednn(const compile_call& call);

} // namespace maskwise::onednn
