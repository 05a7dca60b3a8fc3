#pragma once

#include "input/command_line.hpp"

namespace maskwise::bench {

// Runs every test of the command line and reports. Returns the exit status: 0, or 1 when a test
// failed. Throws input_error.
int run_session(const command_line& line);

} // namespace maskwise::bench
