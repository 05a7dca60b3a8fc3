#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace maskwise::bench {

// The options of one test. Each string except `file` is the value of the option of the same name.
struct case_config {
    std::string file;
    bool is_of_batch = false; // whether a batch file names the case

    bool correctness = true;
    bool performance = false;
    bool list_only = false;

    std::int64_t mb = 0; // 0: as in the file
    std::string dt;      // "bf16" or "1:f32+2:bf16"
    std::string op_kind;
    std::string tensor_property;
    std::string in_shapes;
    std::string op_attrs;
    std::string attr_fpmath;
    int expected_n_partitions = 1; // 0: not checked

    std::string mask = "auto";
    std::string fill = "auto";
    // "maskwise" or "onednn": the library that must run each partition that has a Select, or every
    // partition if the graph has no Select.
    std::string owner;
    std::string expect; // the status that the case must end with
    bool in_place = false;

    int fix_times_per_prb = 0; // 0: until the median is stable
    double max_ms_per_prb = 3000;
    bool cold_cache = false;

    friend bool operator==(const case_config&, const case_config&) = default;
};

// The flags that reproduce the test. Options with their default values are left out.
std::vector<std::string> repro_flags(const case_config& config);
std::string repro_line(const case_config& config);

} // namespace maskwise::bench
