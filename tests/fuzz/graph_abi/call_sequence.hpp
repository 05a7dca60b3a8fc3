#pragma once

#include "description.hpp"

#include <string>

namespace maskwise::fuzz {

// A client that calls in any order: one to three operators, of which one may be destroyed, changed
// or added to a graph at any time, and two graphs, without asking for partitions, which is what
// takes oneDNN long. Every call goes to the plugin and to the real library alike. Empty, or the
// first call that they answered otherwise.
std::string play_call_sequence(generator& random);

} // namespace maskwise::fuzz
