#pragma once

#include <string>
#include <vector>

namespace maskwise::bench {

// Restricts the process to `threads` of the processors it may use and starts the program again
// with `arguments`, so that every runtime (OpenMP reads its environment when it is loaded) sees no
// others. Returns when that is already the case. Throws std::system_error.
void limit_threads(int threads, const std::vector<std::string>& arguments);

} // namespace maskwise::bench
