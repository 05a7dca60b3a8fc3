#pragma once

#include <string>
#include <vector>

namespace maskwise::bench {

// How to start this program again. Where it was started through a loader of its own (a lane built
// for a newer libc), /proc/self/exe is that loader, and the loader's words come first.
void remember_command(int argc, char** argv);

// The path of this program's file.
std::string own_path();

// Replaces the process by this program with `arguments`. Returns only when that fails.
void execute_self(const std::vector<std::string>& arguments);

} // namespace maskwise::bench
