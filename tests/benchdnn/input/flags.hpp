#pragma once

// The one list of flags: parsing and --help both come from it.

#include "input/command_line.hpp"

#include <string>
#include <utility>
#include <vector>

namespace maskwise::bench {

// The options so far, for the next --case. A list option holds all its values.
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

// "--name=value" or "--name" or "-vN" to (name, value). Throws input_error for anything else.
std::pair<std::string, std::string> split_flag(const std::string& token);

// Throws input_error on an unknown name or a value that the flag does not take.
void apply_flag(const std::string& name, const std::string& value, flag_state& state,
                run_options& run);

} // namespace maskwise::bench
