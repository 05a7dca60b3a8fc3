#pragma once

#include "fusion/attention_form.hpp"
#include "fusion/match_policy.hpp"
#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace maskwise::fusion {

// An input of a MatMul. Dimension d of the matrix is dimension order[d] of the tensor.
struct matrix_input {
    logical_tensor tensor; // as the graph describes it
    std::vector<int> order;
};

inline constexpr std::size_t max_numbers = 8;

// A row chain with a SoftMax, between two MatMuls. Includes operators that scale or transpose the
// MatMuls' inputs, and operators that transpose or reorder the result.
struct attention_chain {
    matrix_input query, key, value; // {rows, depth}, {keys, depth} and {keys, columns}
    // At most max_numbers numbers that scale query or key. Their operand indices follow those of
    // the chain's operands.
    std::vector<logical_tensor> numbers;
    std::vector<row_combine> factors;
    data_type weights_type = data_type::f32; // of the second MatMul's first input
    std::size_t dst = 0;                     // id of the output
    std::vector<int> order; // dimension d of dst is dimension order[d] of the MatMul's result
    std::vector<std::size_t> op_ids; // of every operator, including the chain's
};

// Whether `order` is a permutation of 0 to its size - 1.
bool is_order(const std::vector<std::int64_t>& order);
// Adapts `order` to a tensor of this rank. If the rank differs from the order's size, the rank must
// be at least 2, and the order must move only the last two dimensions. Else returns nullopt.
std::optional<std::vector<int>> order_for(int rank, const std::vector<int>& order);
// The order of a transpose by `first` and then by `next`. Both orders have the same size.
std::vector<int> joined(const std::vector<int>& first, const std::vector<std::int64_t>& next);

// The attention that contains the chain. nullopt if there is none, a MatMul input's rank is
// unknown, a transpose's order is not a permutation, or the first MatMul's result is not f32.
std::optional<attention_chain> find_attention(const row_chain& chain, const match_policy& policy);

// The attention that is a whole partition. nullopt unless the attention has every operator and
// every output of the partition.
std::optional<attention_chain> find_attention(const std::vector<op>& partition,
                                              const std::vector<std::size_t>& output_ids,
                                              const row_chain& chain);

} // namespace maskwise::fusion
