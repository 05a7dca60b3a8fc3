#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/compile_call.hpp"

namespace maskwise::onednn {

// Compiles a claimed partition and records the result for the handle. If a visible claim does not
// compile, the status says why. If a silent one does not, the real library compiles it. Any thread.
abi::status compile_partition(const partition_claim& claim, const compile_call& call);

// Compiles by the real library. If that succeeds, forgets Maskwise's earlier result for the handle.
// Exceptions of the real library pass through.
abi::status leave_to_onednn(const compile_call& call);

} // namespace maskwise::onednn
