#pragma once

#include "fusion/match_policy.hpp"
#include "fusion/row_chain.hpp"

namespace maskwise::fusion {

// The longest chain of rows that the policy allows around a Select, or around a SoftMax without
// one. Throws no_chain.
row_chain find_chain(const op& start, const match_policy& policy);

} // namespace maskwise::fusion
