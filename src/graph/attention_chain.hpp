#pragma once

#include "graph/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::graph {

// An input of a MatMul. query is {rows, depth}, key {keys, depth} and value {keys, columns}; a
// turned one lies the other way round.
struct matrix_input {
    logical_tensor tensor; // as given at add_op
    bool is_turned = false;
};

// A whole partition that is attention: a MatMul, a chain of rows with a SoftMax, a MatMul, and what
// only moves its result.
struct attention_chain {
    matrix_input query, key, value;
    data_type weights_type = data_type::f32; // of the second MatMul's input
    std::size_t dst = 0;                     // the tensor that leaves
    std::vector<int> order; // dimension d of dst is dimension order[d] of the MatMul's result
};

// Nothing where an operator or an output of the partition has no place in it, a rank is not known,
// or the graph rounds scores to 16 bits.
std::optional<attention_chain> find_attention(std::span<const op> partition,
                                              std::span<const std::size_t> output_ids,
                                              const row_chain& chain);

} // namespace maskwise::graph
