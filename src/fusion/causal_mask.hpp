#pragma once

#include "fusion/chain_rules.hpp"
#include "fusion/row_chain.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::fusion {

// A cond that the graph makes of indices: GenIndex(row) [+ a - b] >= GenIndex(column), so that row
// i keeps the columns up to i + a - b.
struct causal_mask {
    std::vector<std::size_t> op_ids;
    std::vector<boundary_term> boundary;
};

// The mask of a Select that keeps src_0 as the row. Throws no_chain where cond, which an operator
// here makes, is another mask.
causal_mask match_causal_mask(const op& select, const chain_rules& rules);

} // namespace maskwise::fusion
