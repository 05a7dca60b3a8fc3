#pragma once

#include "model_graph.hpp"
#include "rounding.hpp"

#include <string>

namespace maskwise::ort {

// "Where-16 f32", "com.microsoft.MultiHeadAttention-1 f32".
std::string describe(const node& of);

// Why a Where is left to ONNX Runtime's own kernels; empty where it is claimed.
std::string reason_to_refuse(const node& where);

// Whether a node is an operator that is attention by itself, of any kind.
bool is_attention(const node& of);

// Why an attention operator, of which there is a kernel, is left to ONNX Runtime; empty where it is
// claimed. A claimed node cannot go back, so what is not known to run is left.
std::string reason_to_refuse_attention(const node& of, rounding& rounds);

// Of all nodes of a graph with such a product.
inline constexpr const char* ends_transpose_fusion =
    "ONNX Runtime's MatmulTransposeFusion ends the process at a product of the graph";

// Whether this graph, or one inside it, has a product at which ONNX Runtime's MatmulTransposeFusion
// exchanges a Transpose with a Cast, of its own in f16, and then finds that it cannot fuse them: it
// does not say that it changed the graph, and the next optimizer follows nodes that have gone (seen
// in 1.24 to 1.32). Such a model runs where another fusion of the same pass tells of a change, or
// where the pass sees no Cast. Both depend on every node that is left to ONNX Runtime.
bool breaks_transpose_fusion(const model_graph& graph);

} // namespace maskwise::ort
