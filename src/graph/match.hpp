#pragma once

#include "graph/op.hpp"

#include <string>

namespace maskwise::graph {

// Whether a partition that consists of this operator alone can be Maskwise's for every shape the
// client may compile it with: a claim is visible (is_supported), so it must hold. On `false`,
// `reason` says what speaks against it.
bool can_claim(const op& candidate, std::string& reason);

} // namespace maskwise::graph
