#pragma once

#include "graph/attention_form.hpp"
#include "graph/row_chain.hpp"

#include <optional>
#include <string>
#include <vector>

namespace maskwise::ort {

// Attention: dimension d of an operand is dimension order[d] of the input, which the key has as
// {keys, depth}; dimension d of the output is dimension dst_order[d] of the result.
struct fused_attention {
    std::vector<int> query_order, key_order, value_order, dst_order;
    graph::attention_form form;
};

// Nodes that become one, as it is told to the kernel.
struct fusion {
    std::string name; // of the Softmax
    data_type type{};
    // Names of the values: the scores, or query, key and value; then the chain's operands; then the
    // numbers by which query and key are multiplied.
    std::vector<std::string> inputs;
    std::string output;
    // Of the Softmax's input, where its axis is the last one of that rank only.
    std::optional<std::size_t> rank;
    graph::row_chain chain;
    std::optional<fused_attention> attention;

    std::size_t first_operand() const { return attention ? 3 : 1; }
};

} // namespace maskwise::ort
