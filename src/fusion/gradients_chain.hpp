#pragma once

#include "fusion/match_policy.hpp"
#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::fusion {

// The gradients of an attention, computed from its statistics:
//
//   weights = exp(rows(query * key^T) - statistics)
//   value's gradient = weights^T * dst_gradient
//   scores' gradient = weights * (dst_gradient * value^T - sum(dst * dst_gradient)) * scale
//   query's gradient = scores' gradient * key
//   key's gradient = scores' gradient^T * query
//
// rows() applies the row chain. Each matrix is {..., rows, columns} or {..., keys, columns}.
struct gradients_chain {
    row_chain rows; // from the scores to the subtraction of the statistics, which is not a step
    logical_tensor query, key, value, dst, dst_gradient, statistics;
    std::size_t query_gradient = 0, key_gradient = 0, value_gradient = 0;
    // Whether the heads of each group share keys and values. The third dimension from the end then
    // counts a group's heads, and gradients of key and value are sums over this dimension.
    bool grouped_queries = false;
    // The type to which the graph rounds each head's gradients before this sum. f32: no rounding.
    data_type head_type = data_type::f32;

    // Ids of the inputs: query, key, value, dst, dst_gradient and statistics, then the rows'
    // operands and the causal offset's terms.
    std::vector<std::size_t> inputs() const;
};

inline constexpr std::size_t gradient_tensors = 6;
inline constexpr std::size_t max_gradients_inputs =
    gradient_tensors + max_row_operands + max_offset_terms;

// Finds gradients that are a whole partition. `ops` are in topological order; `output_ids` are the
// partition's output ports. Returns nullopt and sets `reason` for any other partition.
std::optional<gradients_chain> find_gradients(const std::vector<op>& ops,
                                              const std::vector<std::size_t>& output_ids,
                                              std::string& reason);

} // namespace maskwise::fusion
