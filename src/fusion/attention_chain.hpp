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
    logical_tensor tensor; // as described at add_op
    std::vector<int> order;
};

inline constexpr std::size_t max_numbers = 8;

// Rows with a SoftMax between two MatMuls, and the operators that transpose the MatMuls' inputs and
// the result.
struct attention_chain {
    matrix_input query, key, value; // {rows, depth}, {keys, depth} and {keys, columns}
    // The numbers that scale query and key, at most max_numbers. As operands, they follow the
    // chain's.
    std::vector<logical_tensor> numbers;
    std::vector<row_combine> factors;
    data_type weights_type = data_type::f32; // of the second MatMul's input
    std::size_t dst = 0;                     // id of the output
    std::vector<int> order; // dimension d of dst is dimension order[d] of the MatMul's result
    std::vector<std::size_t> op_ids; // of every operator, including the chain's
};

// Whether it is a permutation.
bool is_order(const std::vector<std::int64_t>& order);
// The order for a tensor whose rank differs from the model's. nullopt if dimensions before the last
// two move.
std::optional<std::vector<int>> order_for(int rank, const std::vector<int>& order);
// The order `first`, then `next`. Both have the same rank.
std::vector<int> joined(const std::vector<int>& first, const std::vector<std::int64_t>& next);

// nullopt if the chain is not part of an attention, a rank is unknown, an order of dimensions is
// not a permutation, or the graph rounds scores to 16 bits.
std::optional<attention_chain> find_attention(const row_chain& chain, const match_policy& policy);

// In a partition: also nullopt unless the attention has every operator and every output.
std::optional<attention_chain> find_attention(const std::vector<op>& partition,
                                              const std::vector<std::size_t>& output_ids,
                                              const row_chain& chain);

} // namespace maskwise::fusion
