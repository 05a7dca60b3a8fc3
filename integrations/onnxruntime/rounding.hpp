#pragma once

#include "model_graph.hpp"

#include <map>
#include <span>
#include <vector>

namespace maskwise::ort {

// The reason to refuse a node that would round a value that ONNX Runtime does not round.
inline constexpr const char* rounds_differently = "f16 between operators that compute in f32";

// Tells which values of an f16 graph are exact, that is, f16 in ONNX Runtime without Maskwise. ONNX
// Runtime computes in f32 between casts and removes adjacent casts, so a value between two
// operators may exceed 65504. Maskwise's operators read f16, in which this value would be infinite.
class rounding {
public:
    // Whether all inputs of these nodes are exact, except values that one of these nodes produces.
    // Values of types other than f16 are exact.
    bool is_exact_for(std::span<const node* const> nodes);

private:
    // False if more than `max_depth` operators in sequence precede the value.
    bool is_exact(const value& value, int max_depth);
    bool is_produced_exactly(const node& producer, int max_depth);

    std::map<const node*, bool> known_; // is_exact by producer
};

// Whether an operator other than a product, If, Loop or Scan reads these results of a Softmax.
// Looks past operators that move, copy or cast elements. A small f32 weight may be 0 in f16, which
// changes its logarithm, a quotient and a comparison with 0. False for types other than f16.
bool needs_small_weights(const value& weights);
// Whether an operator divides by the value or computes the value's logarithm. Looks past operators
// that move, copy or cast elements. False for types other than f16.
bool is_inverted(const value& value);

} // namespace maskwise::ort
