#pragma once

#include <string_view>

namespace maskwise {

// MASKWISE_VERBOSE at load: 0 silent, 1 one line for load, claims and refusals, 2 also one line for
// each plan compiled and each execution. Read once; any thread.
int verbose_level();

// Writes "maskwise,<text>\n" to standard error in one call, so that lines of several threads do not
// mix. Standard error, because standard output may be the client's data.
void print_verbose(std::string_view text);

} // namespace maskwise
