#pragma once

#include "input/command_line.hpp"
#include "report/result.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace maskwise::bench {

// Prints verdicts and measurements like oneDNN's driver, counts verdicts, and shows progress on a
// terminal.
class reporter {
public:
    reporter(const run_options& options, std::size_t tests);

    void start(const case_config& config);
    void add(const case_config& config, const case_result& result);

    // Prints the summary. Writes the JSON report if --report names a file. Returns the exit status.
    int finish(const std::string& library);

private:
    void print_verdict(const case_config& config, const case_result& result) const;
    void print_measurement(const case_config& config, const case_result& result);
    void show_progress() const;
    void clear_progress() const;
    void write_report(const std::string& library) const;

    run_options options_;
    std::size_t tests_;
    bool terminal_;
    std::chrono::steady_clock::time_point started_;
    std::map<verdict, std::size_t> counts_;
    std::size_t done_ = 0;
    std::vector<std::pair<case_config, case_result>> results_; // only if a report is requested
    double total_min_ms_ = 0;
    double total_mean_ms_ = 0;
    std::size_t measured_ = 0;
};

// A measurement in the format of --perf-template ("def", "csv" or text with %words%).
std::string format_measurement(const std::string& perf_template, const case_config& config,
                               const case_result& result);

} // namespace maskwise::bench
