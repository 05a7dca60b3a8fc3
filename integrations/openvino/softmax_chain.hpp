#pragma once

#include <openvino/core/node.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace maskwise::openvino {

// SoftMax of masked and perhaps scaled scores: what masked_softmax is made of.
struct softmax_chain {
    // The inputs of masked_softmax; of a clone, if select is a clone of the chain's.
    ov::OutputVector inputs_of(const ov::Node& select) const;

    const ov::Node* select = nullptr;
    bool cond_keeps = true;
    std::string scaling = "none";
    std::size_t factor = 1; // which input of the scaling
};

// The chain that ends in a node, if there is one, it stands alone as a whole, and is large enough
// for one pass to be faster than OpenVINO's.
std::optional<softmax_chain> find_softmax_chain(const ov::Node& softmax);

} // namespace maskwise::openvino
