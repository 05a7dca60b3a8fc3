#pragma once

#include "description.hpp"

#include <string>

namespace maskwise::fuzz {

// A client that calls in any order: one to three operators, each of which may be destroyed, changed
// or added to a graph at any time, and two graphs. It does not ask for partitions, because that is
// slow in oneDNN. Every call goes to the plugin and to the real library. Returns the first call
// whose results differ, or "".
std::string play_call_sequence(generator& random);

} // namespace maskwise::fuzz
