#pragma once

#include "model_graph.hpp"
#include "rounding.hpp"

#include <string>

namespace maskwise::ort {

// Whether a node is an operator that is attention by itself, of any kind.
bool is_attention(const node& of);

// Why an attention operator, of which there is a kernel, is left to ONNX Runtime; empty where it is
// claimed. A claimed node cannot go back, so what is not known to run is left.
std::string reason_to_refuse_attention(const node& of, rounding& rounds);

} // namespace maskwise::ort
