#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace maskwise {

// The environment's MASKWISE_VERBOSE, at most 2; 0 where it is not set. Read once.
int verbose_level();

// Writes "maskwise,<text>\n" to standard error in one call, so that lines of several threads do not
// mix. Standard error, because standard output may be the client's data.
void print_verbose(std::string_view text);

// Runs a plan, and prints it with the time it took where executions are asked for.
template <class Plan, class Run>
void run_measured(const Plan& plan, const Run& run) {
    if (verbose_level() < 2) return run();
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    print_verbose("exec," + to_string(plan) + ',' + std::to_string(spent.count()) + " ms");
}

// A host's "claim,<name>,<what>", or "refuse,<name>,<what>,<why>" where there is a reason.
void print_decision(std::string_view name, std::string_view what, std::string_view why);

} // namespace maskwise
