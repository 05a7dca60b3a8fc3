#pragma once

#include "fusion/chain_rules.hpp"
#include "fusion/row_chain.hpp"

namespace maskwise::fusion {

// The longest chain of rows that the rules allow around a Select, or around a SoftMax without one.
// Throws no_chain.
row_chain find_chain(const op& start, const chain_rules& rules);

} // namespace maskwise::fusion
