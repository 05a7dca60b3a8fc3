#pragma once

#include "fused_kernel.hpp"
#include "rounding.hpp"

#include <string>
#include <vector>

namespace maskwise::ort {

// What is found around a Softmax: nodes that become one, of which one value leaves.
struct found_fusion {
    std::vector<const node*> nodes;
    fused_node form;
    std::string reason_against; // empty where it is claimed

    // "attention f32 9 nodes".
    std::string text() const;
};

// One for each Softmax along the last dimension, in f32 or f16, that no provider has.
std::vector<found_fusion> find_fusions(const model_graph& graph, rounding& rounds);

} // namespace maskwise::ort
