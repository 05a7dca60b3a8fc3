#pragma once

#include "onednn/partition/claim.hpp"
#include "onednn/partition/compile_call.hpp"

namespace maskwise::onednn {

// Compiles a claimed partition and records the result for the handle. Where a visible claim cannot
// be compiled, that is the answer; a silent one is then compiled by the real library. Any thread.
abi::status compile_partition(const partition_claim& claim, const compile_call& call);

// Compiles by the real library, and forgets what Maskwise had compiled into the handle before, once
// the real compile has succeeded. Exceptions of the real library pass through.
abi::status leave_to_onednn(const compile_call& call);

} // namespace maskwise::onednn
