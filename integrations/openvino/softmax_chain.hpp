#pragma once

#include <openvino/core/node.hpp>

#include <memory>
#include <optional>
#include <string>

namespace maskwise::openvino {

// SoftMax of masked and perhaps scaled scores: what masked_softmax is made of.
struct softmax_chain {
    std::shared_ptr<ov::Node> softmax;
    const ov::Node* select = nullptr;
    ov::OutputVector inputs;
    bool cond_keeps = true;
    std::string scaling = "none";
};

// The chain that ends in a node, if there is one, it stands alone as a whole, and is large enough
// for one pass to be faster than OpenVINO's; then prints the line of MASKWISE_VERBOSE.
std::optional<softmax_chain> find_softmax_chain(const std::shared_ptr<ov::Node>& softmax);

} // namespace maskwise::openvino
