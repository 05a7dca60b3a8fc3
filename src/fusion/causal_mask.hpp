#pragma once

#include "fusion/match_policy.hpp"
#include "fusion/row_chain.hpp"

namespace maskwise::fusion {

// Matches a cond that the graph computes from indices: GenIndex(row) [+ a - b] >= GenIndex(column).
// In row i, columns up to i + a - b are unmasked. Adds the mask's operators and terms to the chain.
// src_0 of `select` must be the scores, and an operator must produce cond. Throws no_chain for any
// other mask.
void take_causal_mask(const op& select, const match_policy& policy, row_chain& chain);

} // namespace maskwise::fusion
