#pragma once

#include "fusion/attention_form.hpp"
#include "fusion/match_policy.hpp"
#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace maskwise::fusion {

// A matrix of a product: its dimension d is dimension order[d] of the tensor.
struct matrix_input {
    logical_tensor tensor; // as given at add_op
    std::vector<int> order;
};

inline constexpr std::size_t max_numbers = 8;

// A chain of rows with a SoftMax between two MatMuls, with what moves dimensions of their inputs
// and of the result.
struct attention_chain {
    matrix_input query, key, value; // {rows, depth}, {keys, depth} and {keys, columns}
    // The numbers that scale query and key, at most max_numbers; operands behind the chain's.
    std::vector<logical_tensor> numbers;
    std::vector<row_combine> factors;
    data_type weights_type = data_type::f32; // of the second MatMul's input
    std::size_t dst = 0;                     // the tensor that leaves
    std::vector<int> order; // dimension d of dst is dimension order[d] of the MatMul's result
    std::vector<std::size_t> op_ids; // of every operator, those of the chain among them
};

// Whether each dimension stands in it once.
bool is_order(const std::vector<std::int64_t>& order);
// The order for a tensor of another rank than the model says; nothing if dimensions before the last
// two move.
std::optional<std::vector<int>> order_for(int rank, const std::vector<int>& order);
// The order in which `first` and then `next`, one of as many dimensions, leave them.
std::vector<int> joined(const std::vector<int>& first, const std::vector<std::int64_t>& next);

// Nothing where there is none around the chain, a rank is not known, an order of dimensions is no
// permutation, or the graph rounds scores to 16 bits.
std::optional<attention_chain> find_attention(const row_chain& chain, const match_policy& policy);

// The same in a partition, where every operator and every output has a place in it.
std::optional<attention_chain> find_attention(const std::vector<op>& partition,
                                              const std::vector<std::size_t>& output_ids,
                                              const row_chain& chain);

} // namespace maskwise::fusion
