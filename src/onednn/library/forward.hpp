#pragma once

#include "onednn/library/abi.hpp"

// Visible to clients; everything else of the plugin is hidden.
#define MASKWISE_EXPORT extern "C" __attribute__((visibility("default")))

#define FORWARD(name, since, parameters, arguments)                                                \
    MASKWISE_EXPORT maskwise::onednn::abi::status dnnl_graph_##name parameters;
#define HOOK(name, since, parameters, arguments)                                                   \
    MASKWISE_EXPORT maskwise::onednn::abi::status dnnl_graph_##name parameters;
namespace maskwise::onednn {
#include "onednn/library/functions.inc"
}
#undef HOOK
#undef FORWARD

// For tests and tools, not one of oneDNN's: 1 where Maskwise executes this compiled partition.
MASKWISE_EXPORT int
maskwise_onednn_owns(maskwise::onednn::abi::const_compiled_partition compiled_partition);
