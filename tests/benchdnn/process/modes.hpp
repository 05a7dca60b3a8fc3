#pragma once

// The modes of the program after its command line is read.

#include "input/command_line.hpp"

#include <string>
#include <vector>

namespace maskwise::bench {

// Restricts the process to `threads` of its processors and starts the program again with
// `arguments`, so that every runtime sees only these (OpenMP reads its environment when it is
// loaded). Returns if the process is already restricted. Throws std::system_error.
void limit_threads(int threads, const std::vector<std::string>& arguments);

// Runs every test of the command line and reports. Returns the exit status: 0, or 1 when a test
// failed. Throws input_error.
int run_session(const command_line& line);

// Answers requests from standard input until it ends; each answer is one line of JSON after
// answer_prefix. Requests:
//   run ["--flag=value", ...]   one test: {"result": {...}, "library": "..."}
//   time SAMPLES MAX_MS         more samples of that test: {"samples": [ms, ...]}
// A fault of the input: {"input_error": "..."}.
int serve(int verbose);

} // namespace maskwise::bench
