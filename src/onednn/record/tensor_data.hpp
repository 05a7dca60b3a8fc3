#pragma once

#include "onednn/library/abi.hpp"

#include <array>
#include <cstddef>
#include <optional>

namespace maskwise::onednn {

// The real library does not return a host scalar's value once the tensor exists.
struct tensor_record {
    abi::logical_tensor logical_tensor{};
    std::optional<std::array<std::byte, 8>> scalar;
};

// The tensor's memory, or null.
void* memory_of(abi::const_tensor tensor);

// The tensor's memory; for a host scalar, the recorded value.
const void* data_of(abi::const_tensor tensor);

} // namespace maskwise::onednn
