#pragma once

#include "model_ops.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::openvino {

// A model's nodes that one operation computes (see fusion::block). The operation replaces the last
// node.
struct block_match {
    fusion::block block;
    std::vector<value_source> sources; // per input of `block`
    node_set nodes;
    std::shared_ptr<ov::Node> last; // produces the block's output
    bool scales_by_depth = false;   // see fused

    ov::OutputVector inputs() const;
    // For example "attention f32 9 nodes".
    std::string text() const;
};

// Matches a block that ends in `end`; nullopt if there is none. Attention ends in a MatMul or a
// ScaledDotProductAttention, and includes Transposes of the result. A block without attention ends
// in a Softmax of known rank and contains a Select. Nodes in `claimed` never match.
std::optional<block_match> find_block(ov::Node& end, const node_set& claimed);

} // namespace maskwise::openvino
