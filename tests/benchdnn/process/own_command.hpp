#pragma once

#include <string>
#include <vector>

namespace maskwise::bench {

// The command that starts this program again. If a separate loader started it (a lane built for a
// newer libc), /proc/self/exe is that loader, and the loader's arguments come first.
void remember_command(int argc, char** argv);

// The path of this program's file.
std::string own_path();

// Replaces the process by this program with `arguments`. Returns only when that fails.
void execute_self(const std::vector<std::string>& arguments);

} // namespace maskwise::bench
