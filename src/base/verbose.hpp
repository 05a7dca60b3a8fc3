#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace maskwise {

// MASKWISE_VERBOSE, clamped to [0, 2]; 0 if unset or not a number. Read once.
int verbose_level();

// Writes the line "maskwise,<text>" in one call, so that lines of several threads do not mix.
// Writes to standard error, because standard output may be the client's data.
void print_verbose(std::string_view text);

// Runs a plan. At verbose level 2, also prints the plan and its time.
template <class Plan, class Run>
void run_measured(const Plan& plan, const Run& run) {
    if (verbose_level() < 2) return run();
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    print_verbose("exec," + to_string(plan) + ',' + std::to_string(spent.count()) + " ms");
}

// Prints "claim,<name>,<subject>", or "refuse,<name>,<subject>,<why>" if `why` is not empty.
void print_decision(std::string_view name, std::string_view subject, std::string_view why);

} // namespace maskwise
