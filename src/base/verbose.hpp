#pragma once

#include <string_view>

namespace maskwise {

// The environment's MASKWISE_VERBOSE, at most 2; 0 where it is not set. Read once.
int verbose_level();

// Writes "maskwise,<text>\n" to standard error in one call, so that lines of several threads do not
// mix. Standard error, because standard output may be the client's data.
void print_verbose(std::string_view text);

} // namespace maskwise
