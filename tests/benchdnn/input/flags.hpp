#pragma once

// Parses single flags and writes the text of --help.

#include "input/command_line.hpp"

#include <string>
#include <utility>
#include <vector>

namespace maskwise::bench {

// The options that the next --case gets. A list option holds all its values.
struct flag_state {
    case_config fixed;
    std::vector<std::string> in_shapes{""};
    std::vector<std::string> op_attrs{""};
    std::vector<std::string> attr_fpmath{""};
    std::vector<std::string> op_kind{""};
    std::vector<std::string> tensor_property{""};
    std::vector<std::string> dt{""};
    std::vector<std::string> mask{"auto"};
    std::vector<std::int64_t> mb{0};

    friend bool operator==(const flag_state&, const flag_state&) = default;
};

// Splits "--name=value", "--name" or "-vN" into (name, value). Throws input_error for other tokens.
std::pair<std::string, std::string> split_flag(const std::string& token);

// Throws input_error on an unknown name or on a value that the flag does not accept.
void apply_flag(const std::string& name, const std::string& value, flag_state& state,
                run_options& run);

} // namespace maskwise::bench
