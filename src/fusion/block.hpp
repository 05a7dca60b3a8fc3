#pragma once

#include "fusion/attention_chain.hpp"
#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace maskwise::fusion {

// Operators that run in one call: a row chain, alone or between the two MatMuls of an attention.
struct block {
    row_chain rows;
    std::optional<attention_chain> attention;

    // Ids of the inputs. The first ids are query, key and value, or the scores if there is no
    // attention. The rows' operands, the numbers that scale query and key, and the causal offset's
    // terms follow.
    std::vector<std::size_t> inputs() const;
    std::size_t result() const { return attention ? attention->dst : rows.result; }
    const std::vector<std::size_t>& op_ids() const {
        return attention ? attention->op_ids : rows.op_ids;
    }
};

inline constexpr std::size_t max_block_inputs =
    3 + max_row_operands + max_numbers + max_offset_terms;

} // namespace maskwise::fusion
