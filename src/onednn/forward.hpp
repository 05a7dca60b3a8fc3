#pragma once

#include "onednn/abi.hpp"

// Visible to clients; everything else of the plugin is hidden.
#define MASKWISE_EXPORT extern "C" __attribute__((visibility("default")))

#define FORWARD(name, since, parameters, arguments)                                                \
    MASKWISE_EXPORT maskwise::onednn::abi::status dnnl_graph_##name parameters;
#define HOOK(name, since, parameters, arguments)                                                   \
    MASKWISE_EXPORT maskwise::onednn::abi::status dnnl_graph_##name parameters;
namespace maskwise::onednn {
#include "onednn/functions.inc"
}
#undef HOOK
#undef FORWARD
