#pragma once

#include "fused_kernel.hpp"
#include "fusion_graph.hpp"
#include "rounding.hpp"

#include <string>
#include <vector>

namespace maskwise::ort {

// What is found around a Softmax: nodes that become one, of which one value leaves.
struct found_fusion {
    const abi::node* soft_max = nullptr;
    std::vector<const abi::node*> nodes;
    const abi::value_info* result = nullptr;
    fused_node form;
    std::string reason_against; // empty where it is claimed

    // "attention f32 9 nodes".
    std::string text() const;
};

// One for each Softmax along the last dimension, in f32 or f16, of which `is_free` allows the node.
std::vector<found_fusion> find_fusions(const runtime& with, const abi::graph* graph,
                                       const fusion_ops::node_filter& is_free, rounding& rounds);

} // namespace maskwise::ort
