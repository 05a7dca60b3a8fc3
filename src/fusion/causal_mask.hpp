#pragma once

#include "fusion/match_policy.hpp"
#include "fusion/row_chain.hpp"

namespace maskwise::fusion {

// A cond that the graph makes of indices: GenIndex(row) [+ a - b] >= GenIndex(column), so that row
// i keeps the columns up to i + a - b. Adds its operators and terms to the chain, of which `select`
// keeps src_0 as the row. Throws no_chain if cond, which an operator here makes, is another mask.
void take_causal_mask(const op& select, const match_policy& policy, row_chain& chain);

} // namespace maskwise::fusion
