#pragma once

#include "client/execution.hpp"
#include "client/timing.hpp"
#include "input/case_config.hpp"
#include "report/result.hpp"

#include <memory>
#include <vector>

namespace maskwise::bench {

// Runs cases in this process, one at a time.
class runner {
public:
    explicit runner(int verbose = 0) : verbose_(verbose) {}

    // Throws input_error if the case cannot be read or rewritten. Every other outcome is a verdict.
    case_result run(const case_config& config);

    // Returns more samples of the last case, in milliseconds; empty if the case was not measured.
    std::vector<double> time_again(int samples, double max_ms);

private:
    case_result run_on_library(const case_config& config, const graph& g);
    void judge_partitions(const case_config& config, case_result& result) const;
    void compile(const case_config& config, case_result& result);
    void check_owner(const case_config& config) const;
    void check_values(const case_config& config, case_result& result);
    bool maskwise_owns_selects() const; // true if there is a Select and Maskwise runs all Selects
    execution check_with(const tensor_map& inputs, const case_config& config,
                         case_result& result) const;
    void compare_outputs(const execution& e, const tensor_map& inputs, case_result& result) const;
    void judge_as_driver(const execution& e, const tensor_map& inputs, case_result& result) const;
    void check_moved_bits(const execution& e) const;
    void measure(const case_config& config, case_result& result);
    void summarize_partitions(case_result& result) const;

    int verbose_;
    // State of the last case. A member may refer to members declared before it.
    graph known_;
    std::unique_ptr<program> program_;
    tensor_map inputs_;
    std::unique_ptr<execution> timed_;
    timed_calls calls_; // for time_again
    bool cold_cache_ = false;
};

} // namespace maskwise::bench
