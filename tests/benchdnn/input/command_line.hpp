#pragma once

#include "input/case_config.hpp"

#include <optional>
#include <string>
#include <vector>

namespace maskwise::bench {

// Options of the whole run.
struct run_options {
    bool help = false;
    bool list = false; // list the tests without running them
    bool serve = false;
    bool isolate = false;
    int rounds = 1;  // how many times each case runs
    int threads = 0; // 0: all threads of the process
    int verbose = 0;
    std::string report;
    std::string perf_template = "def";
};

struct command_line {
    run_options run;
    std::vector<case_config> cases; // per --case, one for each combination of listed values
};

// Options act on every later --case, as in oneDNN's driver. --batch reads more options and cases
// from a file. Case and batch files are also searched relative to `program`, this executable's
// path. Throws input_error on an unknown flag, a bad value or a missing file. Also throws on a case
// option after the last --case, unless the option restores its default.
command_line parse_command_line(const std::vector<std::string>& arguments,
                                const std::string& program);

std::string help_text();

// The tokens of a batch file, separated by whitespace. '#' begins a comment. A '\' at a token's end
// joins the next token.
std::vector<std::string> tokenize_batch(const std::string& text);

} // namespace maskwise::bench
