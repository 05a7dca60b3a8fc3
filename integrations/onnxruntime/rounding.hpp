#pragma once

#include "model_graph.hpp"

#include <map>
#include <span>
#include <vector>

namespace maskwise::ort {

// The reason for a node that would round where ONNX Runtime does not.
inline constexpr const char* rounds_differently = "f16 between operators that compute in f32";

// Tells which values of an f16 graph are exactly f16 in ONNX Runtime's own session. ONNX Runtime
// computes in f32 between casts and removes casts that meet, so a value between two operators may
// exceed 65504. Maskwise's operators read f16, where it would become infinite.
class rounding {
public:
    // Whether all inputs of these nodes from other nodes are exact. True for every type but f16.
    bool is_exact_for(std::span<const node* const> nodes);

private:
    // False for values that come through more than `max_depth` operators.
    bool is_exact(const value& value, int max_depth);
    bool is_produced_exactly(const node& producer, int max_depth);

    std::map<const node*, bool> known_; // by the producer
};

// Whether an operator other than a product reads these results of a Softmax, directly or moved. A
// small f32 weight may be 0 in f16, which changes its logarithm, a quotient and a comparison with
// 0. False for every type but f16.
bool needs_small_weights(const value& weights);
// Whether an operator divides by the value or takes its logarithm, directly, moved or cast. False
// for every type but f16.
bool is_inverted(const value& value);

} // namespace maskwise::ort
