#pragma once

#include "graph/chain_rules.hpp"
#include "graph/row_chain.hpp"

namespace maskwise::graph {

// The longest chain of rows around the Select that the rules allow. Throws no_chain.
row_chain find_chain(const op& select, const chain_rules& rules);

} // namespace maskwise::graph
