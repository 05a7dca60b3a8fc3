#pragma once

#include "description.hpp"

#include <string>

namespace maskwise::fuzz {

// Plays a client that calls in any order, on one to three operators and two graphs. Each operator
// may be destroyed, changed or added to a graph at any time. The client gets no partitions, because
// oneDNN is slow to make them. Every call goes to the plugin and to oneDNN alone. Returns the first
// call whose results differ, or "".
std::string play_call_sequence(generator& random);

} // namespace maskwise::fuzz
