#pragma once

#include "input/case_config.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::bench {

// The verdicts of oneDNN's driver, and ABORTED: the client died, or a C++ exception left a C
// function.
enum class verdict {
    passed,
    failed,
    skipped,
    mistrusted,
    unimplemented,
    invalid_arguments,
    listed,
    aborted,
};

const char* verdict_word(verdict v);
bool counts_as_failure(verdict v);

struct measurement {
    double first_ms = 0; // time of the first call; the other members exclude this call
    double min_ms = 0;
    double median_ms = 0;
    double mean_ms = 0;
    double max_ms = 0;
    int samples = 0;
    std::size_t bytes = 0; // see execution::bytes

    double gb_per_s(double ms) const {
        return ms > 0 ? static_cast<double>(bytes) / ms * 1e-6 : 0.0;
    }
};

struct partition_summary {
    std::vector<std::size_t> op_ids;
    bool supported = false;
    std::string owner; // "maskwise", "onednn"; empty before compile
};

// A Select in the report. coverage.py and run_table.py read these values.
struct select_summary {
    std::string dtype;
    std::vector<std::vector<std::int64_t>> shapes;  // cond, src_0, src_1, dst
    std::vector<std::vector<std::int64_t>> strides; // in elements
};

struct case_result {
    verdict state = verdict::failed;
    std::string reason;
    std::vector<std::size_t> wrong_tensors; // ids; `reason` describes the first wrong tensor
    std::size_t errors = 0;
    std::size_t total = 0;
    double allowance_used = 0; // largest comparison::used of any output
    double wall_ms = 0;
    double compile_ms = 0;
    std::vector<partition_summary> partitions;
    std::vector<select_summary> selects;
    std::optional<measurement> perf;
};

} // namespace maskwise::bench
