#pragma once

#include "onednn/abi.hpp"
#include "onednn/records.hpp"

#include <memory>

namespace maskwise::onednn {

// The tensor's memory, or null.
void* memory_of(abi::const_tensor tensor);

// The same, and for a host scalar, which has no memory in the real library, its value: `kept` holds
// it while the caller uses the pointer.
void* data_of(abi::const_tensor tensor, std::shared_ptr<const tensor_record>& kept);

} // namespace maskwise::onednn
