#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/compile_call.hpp"

namespace maskwise::onednn {

// Compiles a claimed partition and records the result for the handle. If a visible claim does not
// compile, the status says why; the real library then compiles a silent one. Any thread.
abi::status compile_partition(const partition_claim& claim, const compile_call& call);

// Compiles by the real library. If that succeeds, forgets what Maskwise had compiled for the handle
// before. Exceptions of the real library pass through.
abi::status leave_to_onednn(const compile_call& call);

} // namespace maskwise::onednn
