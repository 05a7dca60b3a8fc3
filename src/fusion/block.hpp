#pragma once

#include "fusion/attention_chain.hpp"
#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace maskwise::fusion {

// Operators that run as one: rows around a mask, or attention with these rows between its products.
struct block {
    row_chain rows;
    std::optional<attention_chain> attention;

    // Ids of the inputs: query, key and value, or the scores; then the rows' operands, the numbers
    // that scale query and key, and the terms of the causal offset.
    std::vector<std::size_t> inputs() const;
    std::size_t result() const { return attention ? attention->dst : rows.result; }
    const std::vector<std::size_t>& op_ids() const {
        return attention ? attention->op_ids : rows.op_ids;
    }
};

inline constexpr std::size_t max_block_inputs =
    3 + max_row_operands + max_numbers + max_offset_terms;

} // namespace maskwise::fusion
