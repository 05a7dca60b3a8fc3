#pragma once

#include "model_graph.hpp"

#include <map>
#include <span>
#include <vector>

namespace maskwise::ort {

// Of a node that would round where ONNX Runtime does not.
inline constexpr const char* rounds_otherwise = "f16 between operators that compute in f32";

// Which values of an f16 graph have no more bits than f16 in ONNX Runtime's own session. It
// computes in f32, between casts to and from f16 of which it takes out those that meet, so that a
// value between two operators may lie beyond 65504. An operator of Maskwise's reads f16: there such
// a value would become infinite.
class rounding {
public:
    // Of all inputs of these nodes that other nodes make; true of every other type.
    bool is_exact_for(std::span<const node* const> nodes);

private:
    // Of values that come through more operators than `most_steps` nothing is known.
    bool is_exact(const value& of, int most_steps);
    bool is_made_exact(const node& maker, int most_steps);

    std::map<const node*, bool> known_; // by the maker
};

// Whether somebody reads these results of a Softmax, as they are or moved, for more than a product:
// what is small in f32 may be 0 in f16, and then its logarithm, what is divided by it, and whether
// it is above 0 are others. True of no other type.
bool needs_small_weights(const value& weights);
// Whether somebody divides by the value or takes its logarithm, as it is, moved or cast. True of no
// other type.
bool divides(const value& by);

} // namespace maskwise::ort
