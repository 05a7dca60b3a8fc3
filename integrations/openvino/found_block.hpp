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
    std::vector<source> sources;
    node_set nodes;
    std::shared_ptr<ov::Node> last; // its output is the block's
    bool scales_by_depth = false;   // see fused

    ov::OutputVector inputs() const;
    // "attention f32 9 nodes".
    std::string text() const;
};

// Attention that ends in a MatMul or a ScaledDotProductAttention and the Transposes of its result,
// or rows with a Select that end in a Softmax; nothing where there is none. Nodes of `claimed` are
// not taken.
std::optional<found_block> find_block(ov::Node& end, const node_set& claimed);

} // namespace maskwise::openvino
