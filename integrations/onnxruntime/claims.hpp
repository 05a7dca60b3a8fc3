#pragma once

#include "model_graph.hpp"
#include "rounding.hpp"

#include <string>

namespace maskwise::ort {

// For example "Where-16 f32" or "com.microsoft.MultiHeadAttention-1 f32".
std::string describe(const node& node);

// Returns why ONNX Runtime's own kernel runs a Where; empty if Maskwise claims the Where.
std::string reason_to_refuse(const node& where);

// Whether a node is an attention operator of any kind.
bool is_attention(const node& node);

// Returns why ONNX Runtime runs an attention operator for which Maskwise has a kernel; empty if
// Maskwise claims the operator. A claim is final, so a node that might fail is not claimed.
std::string reason_to_refuse_attention(const node& node, rounding& exactness);

// The reason against every node of a graph for which breaks_transpose_fusion is true.
inline constexpr const char* ends_transpose_fusion =
    "ONNX Runtime's MatmulTransposeFusion ends the process at a product of the graph";

// Whether this graph or a graph inside it triggers a bug of ONNX Runtime's MatmulTransposeFusion
// (1.24 to 1.32). At some MatMuls, the fusion swaps a Transpose with a Cast that ONNX Runtime
// inserted for f16, and then cannot fuse the MatMul. The fusion does not report the change, so the
// next optimizer follows deleted nodes. The process survives if another fusion of the same pass
// reports a change, or if the pass sees no Cast. These conditions depend on all nodes that ONNX
// Runtime runs, so they are not checked.
bool breaks_transpose_fusion(const model_graph& graph);

} // namespace maskwise::ort
