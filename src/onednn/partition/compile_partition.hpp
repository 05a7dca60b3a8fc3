#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/compile_call.hpp"

namespace maskwise::onednn {

// Compiles a claimed partition and records the result for the handle. If Maskwise cannot compile a
// visible claim, returns an error status. The real library compiles a silent claim that Maskwise
// cannot compile, and a Select with types outside the schema. Any thread may call this function.
abi::status compile_partition(const partition_claim& claim, const compile_call& call);

// Compiles by the real library. If that succeeds, erases Maskwise's earlier result for the handle.
// Exceptions of the real library pass through.
abi::status leave_to_onednn(const compile_call& call);

} // namespace maskwise::onednn
