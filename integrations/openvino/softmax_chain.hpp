#pragma once

#include "plan/row_plan.hpp"

#include <openvino/core/node.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

namespace maskwise::openvino {

// SoftMax of masked scores: what masked_softmax is made of.
struct softmax_chain {
    // The inputs of masked_softmax, where `scores` makes the input of the Softmax; also of a clone.
    ov::OutputVector inputs_of(const ov::Node& scores) const;

    std::vector<row_step> steps;
    // Of each input of masked_softmax, the inputs to follow from what makes the Softmax's input.
    std::vector<std::vector<std::size_t>> paths;
    std::set<const ov::Node*> nodes;
};

// The chain of f32 that ends in a node, if there is one with a Select and, unless it is forced, one
// pass is faster than OpenVINO's: the chain stands alone as a whole, and is large enough. A node
// that `softmax` has replaced counts as no reader.
std::optional<softmax_chain> find_softmax_chain(const ov::Node& softmax, bool is_forced,
                                                const ov::Node* replaced = nullptr);

} // namespace maskwise::openvino
