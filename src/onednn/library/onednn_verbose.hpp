#pragma once

#include "onednn/library/abi.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace maskwise::onednn {

// Lines in oneDNN's own verbose format, so that tools that read ONEDNN_VERBOSE see Maskwise's
// partitions as well, with backend `maskwise`. Written to standard output like oneDNN's.
// ONEDNN_VERBOSE (then DNNL_VERBOSE) is read once; dnnl_set_verbose overrides it. Component filters
// and VERBOSE_TIMESTAMP are honoured by oneDNN only.
bool exec_lines_wanted();
bool compile_lines_wanted();

struct partition_line {
    std::size_t id;
    std::string_view names;
    const std::vector<abi::logical_tensor>& inputs;
    const std::vector<abi::logical_tensor>& outputs;
    int fpmath_mode;
    bool fpmath_applies_to_int;
    std::string_view kind; // "select", "attention" or "composite"
    std::size_t scratch_bytes;
};

void print_compile_line(const partition_line& line, double milliseconds);
// `scratchpad_owner` is "user" or "library", as oneDNN calls them.
void print_exec_line(const partition_line& line, const char* scratchpad_owner, double milliseconds);

} // namespace maskwise::onednn
