#pragma once

// The functions that main calls after parsing the command line.

#include "input/command_line.hpp"

#include <string>
#include <vector>

namespace maskwise::bench {

// Restricts the process to `threads` processors and executes the program again with `arguments`,
// because some runtimes (OpenMP) read their environment when they are loaded. Returns only if the
// process is already restricted. Throws std::system_error, or input_error if the process has fewer
// than `threads` processors.
void limit_threads(int threads, const std::vector<std::string>& arguments);

// Runs every test of the command line and reports. Returns the exit status: 0, or 1 if a test
// failed. Throws input_error.
int run_session(const command_line& line);

// Answers requests until standard input ends. Each answer is one line of JSON after
// answer_prefix. Requests:
//   run ["--flag=value", ...]   one test: {"result": {...}, "library": "..."}
//   time SAMPLES MAX_MS         more samples of the last test: {"samples": [ms, ...]}
// If the request or its case is wrong, the answer is {"input_error": "..."}.
int serve(int verbose);

} // namespace maskwise::bench
