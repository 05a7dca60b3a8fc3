#pragma once

#include "model_graph.hpp"
#include "rounding.hpp"

#include <string>

namespace maskwise::ort {

// "Where-16 f32", "com.microsoft.MultiHeadAttention-1 f32".
std::string describe(const node& node);

// Why a Where is left to ONNX Runtime's own kernels; empty if it is claimed.
std::string reason_to_refuse(const node& where);

// Whether a node is an attention operator of any kind.
bool is_attention(const node& node);

// Why an attention operator with a kernel is left to ONNX Runtime; empty if it is claimed. A claim
// is final, so a node that might fail is left.
std::string reason_to_refuse_attention(const node& node, rounding& exactness);

// The reason for all nodes of a graph for which breaks_transpose_fusion is true.
inline constexpr const char* ends_transpose_fusion =
    "ONNX Runtime's MatmulTransposeFusion ends the process at a product of the graph";

// Whether this graph or one inside it triggers a bug of ONNX Runtime's MatmulTransposeFusion (1.24
// to 1.32). At some products it swaps a Transpose with a Cast that ONNX Runtime inserted for f16,
// and then cannot fuse them. It does not report the change, so the next optimizer follows deleted
// nodes. The model survives if another fusion of the same pass reports a change, or if the pass
// sees no Cast. Both depend on every node that is left to ONNX Runtime.
bool breaks_transpose_fusion(const model_graph& graph);

} // namespace maskwise::ort
