#pragma once

#include "oneapi/dnnl/dnnl_graph.h"

#include <cstdint>

namespace maskwise::test {

// Bytes of one element, of the types that clients here give to a graph.
inline std::int64_t width_bytes(const dnnl_graph_logical_tensor_t& tensor) {
    switch (tensor.data_type) {
    case dnnl_f32:
    case dnnl_s32:
        return 4;
    case dnnl_f16:
    case dnnl_bf16:
        return 2;
    default:
        return 1;
    }
}

} // namespace maskwise::test
