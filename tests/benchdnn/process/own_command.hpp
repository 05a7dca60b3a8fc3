#pragma once

#include <string>
#include <vector>

namespace maskwise::bench {

// Remembers how to start this program again. In a lane that needs a newer libc, the command begins
// with the separate loader and its arguments.
void remember_command(int argc, char** argv);

// The path of this program's file.
std::string own_path();

// Replaces the process by this program with `arguments`. Returns only if execv fails.
void execute_self(const std::vector<std::string>& arguments);

} // namespace maskwise::bench
