// maskwise-bench runs graph cases on the oneDNN that this process loads. Cases are in the JSON
// format of benchdnn's graph driver. maskwise-bench checks the results against its oracle, and
// measures times. See docs/harness.md.

#include "input/command_line.hpp"
#include "model/graph.hpp"
#include "process/modes.hpp"
#include "process/own_command.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>

namespace {

namespace bench = maskwise::bench;

constexpr int input_fault = 2;

int run(int argc, char** argv) {
    bench::remember_command(argc, argv);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const bench::command_line line = bench::parse_command_line(arguments, bench::own_path());
    if (line.run.help) {
        fmt::print("{}", bench::help_text());
        return 0;
    }
    if (line.run.threads > 0) bench::limit_threads(line.run.threads, arguments);
    if (line.run.serve) return bench::serve(line.run.verbose);
    if (line.cases.empty()) throw bench::input_error("no --case and no --batch (see --help)");
    return bench::run_session(line);
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN); // a write to a dead child's pipe then returns an error
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fflush(stdout);
        fmt::print(stderr, "maskwise-bench: {}\n", error.what());
        return input_fault;
    }
}
