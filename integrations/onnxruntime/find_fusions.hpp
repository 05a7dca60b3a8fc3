#pragma once

#include "fused_kernel.hpp"
#include "rounding.hpp"

#include <string>
#include <vector>

namespace maskwise::ort {

// Nodes around a Softmax that one node with one output may replace.
struct fusion_match {
    std::vector<const node*> nodes;
    fused_block fused;
    std::string reason_against; // empty if Maskwise claims the nodes

    // For example "attention f32 9 nodes".
    std::string text() const;
};

// One match per Softmax that no provider has claimed, in f32 or f16 and along the last dimension.
std::vector<fusion_match> find_fusions(const model_graph& graph, rounding& exactness);

} // namespace maskwise::ort
