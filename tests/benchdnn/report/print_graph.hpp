#pragma once

#include "model/graph.hpp"

#include <string>

namespace maskwise::bench {

// The graph as a case file (what -v7 prints); parse_case reads it back to the same graph.
std::string graph_text(const graph& g);

} // namespace maskwise::bench
