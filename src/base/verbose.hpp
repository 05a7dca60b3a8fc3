#pragma once

#include <string_view>

namespace maskwise {

// The environment's MASKWISE_VERBOSE, at most 2; 0 where it is not set. Read once.
int verbose_level();

// Writes "maskwise,<text>\n" to standard error in one call, so that lines of several threads do not
// mix. Standard error, because standard output may be the client's data.
void print_verbose(std::string_view text);

// A host's "claim,<name>,<what>", or "refuse,<name>,<what>,<why>" where there is a reason.
void print_decision(std::string_view name, std::string_view what, std::string_view why);

} // namespace maskwise
