#pragma once

#include "graph/attention_chain.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::ort {

// Nodes that become one, as it is told to the kernel.
struct fusion {
    std::string name; // of the Softmax
    data_type type{};
    // Names of the values that enter, in the order of graph::inputs_of.
    std::vector<std::string> inputs;
    std::string output;
    graph::row_chain chain;
    std::optional<graph::attention_chain> attention;
};

} // namespace maskwise::ort
