#pragma once

#include "model_graph.hpp"

#include <map>
#include <span>
#include <vector>

namespace maskwise::ort {

// The reason against a node that would round where ONNX Runtime does not.
inline constexpr const char* rounds_differently = "f16 between operators that compute in f32";

// Tells which values of an f16 graph are exactly f16 in ONNX Runtime without Maskwise. ONNX Runtime
// computes in f32 between casts and removes adjacent casts, so a value between two operators may
// exceed 65504. Maskwise's operators read f16, in which such a value would be infinite.
class rounding {
public:
    // Whether all inputs of these nodes are exact, except values from one of these nodes to
    // another. True for every type but f16.
    bool is_exact_for(std::span<const node* const> nodes);

private:
    // False if a path of more than `max_depth` operators leads to the value.
    bool is_exact(const value& value, int max_depth);
    bool is_produced_exactly(const node& producer, int max_depth);

    std::map<const node*, bool> known_; // by the producer
};

// Whether an operator other than a product, an If, a Loop or a Scan reads these results of a
// Softmax, directly or after operators that move, copy or cast the elements. A small f32 weight may
// be 0 in f16, which changes its logarithm, a quotient and a comparison with 0. False for every
// type but f16.
bool needs_small_weights(const value& weights);
// Whether an operator divides by the value or computes the value's logarithm, directly or after
// operators that move, copy or cast the value. False for every type but f16.
bool is_inverted(const value& value);

} // namespace maskwise::ort
