#pragma once

#include "onednn/records.hpp"

#include <chrono>

namespace maskwise::onednn {

// Lines in oneDNN's own verbose format, so that tools that read ONEDNN_VERBOSE see Maskwise's
// partitions as well, with backend `maskwise`. Written to standard output like oneDNN's.
// ONEDNN_VERBOSE (then DNNL_VERBOSE) is read once; dnnl_set_verbose overrides it. Component filters
// and VERBOSE_TIMESTAMP are honoured by oneDNN only.
bool exec_lines_wanted();

void report_compiled(const compiled_record& record,
                     std::chrono::duration<double, std::milli> duration);
// `scratchpad_owner` is "user" or "library", as oneDNN calls them.
void report_executed(const compiled_record& record, const char* scratchpad_owner,
                     std::chrono::duration<double, std::milli> duration);

} // namespace maskwise::onednn
