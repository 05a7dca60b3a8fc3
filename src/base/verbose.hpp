#pragma once

#include "maskwise/maskwise.hpp" // verbose_level

#include <string_view>

namespace maskwise {

// Writes "maskwise,<text>\n" to standard error in one call, so that lines of several threads do not
// mix. Standard error, because standard output may be the client's data.
void print_verbose(std::string_view text);

} // namespace maskwise
