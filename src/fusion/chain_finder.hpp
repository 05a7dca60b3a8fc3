#pragma once

#include "fusion/match_policy.hpp"
#include "fusion/row_chain.hpp"

namespace maskwise::fusion {

// The longest chain around `start` that the policy allows. `start` is a Select, a SoftMax or an
// element-wise operator. Throws no_chain if there is no chain.
row_chain find_chain(const op& start, const match_policy& policy);

} // namespace maskwise::fusion
