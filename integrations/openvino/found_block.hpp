#pragma once

#include "model_ops.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::openvino {

// What becomes one operation, in place of the node that it ends in.
struct found_block {
    fusion::block block;
    std::vector<source> sources; // of the block's inputs
    node_set nodes;

    // Of the node's inputs, also in a clone.
    ov::OutputVector inputs_of(const ov::OutputVector& inputs) const;
    std::shared_ptr<ov::Node> make(const ov::OutputVector& inputs) const;
    // "attention f32 9 nodes".
    std::string text(const ov::Node& end) const;
};

// Attention that ends in a MatMul or a ScaledDotProductAttention, or rows with a Select that end in
// a Softmax; nothing where there is none. For `replaced` see model_ops.
std::optional<found_block> find_block(const ov::Node& end, const ov::Node* replaced = nullptr);

} // namespace maskwise::openvino
