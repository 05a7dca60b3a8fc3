#pragma once

#include "base/verbose.hpp"

#include <chrono>
#include <string>

namespace maskwise {

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

} // namespace maskwise
