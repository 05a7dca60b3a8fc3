#pragma once

#include "onednn/library/abi.hpp"

// Visible to clients. All other symbols of the plugin are hidden.
#define MASKWISE_EXPORT extern "C" __attribute__((visibility("default")))

namespace maskwise::onednn {
#define FORWARD(name, since, parameters, arguments)                                                \
    MASKWISE_EXPORT abi::status dnnl_graph_##name parameters;
#include "onednn/library/functions.inc"
} // namespace maskwise::onednn

// For tests and tools; oneDNN has no such function. Returns 1 if Maskwise executes this compiled
// partition.
MASKWISE_EXPORT int
maskwise_onednn_owns(maskwise::onednn::abi::const_compiled_partition compiled_partition);
