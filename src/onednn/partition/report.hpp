#pragma once

#include "onednn/partition/executable.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace maskwise::onednn {

using milliseconds = std::chrono::duration<double, std::milli>;

// Whether report_executed would write anything.
bool executions_are_reported();

// Both functions print the enabled verbose lines, in oneDNN's format and in Maskwise's.
void report_compiled(const executable& compiled, milliseconds duration);
void report_executed(const executable& executed, bool has_scratchpad, milliseconds duration);

// Prints a verbose line. `verdict` is "claim" or "refuse". `subject` is the partition's kind or its
// operators' names.
void report_verdict(const char* verdict, std::size_t partition, const std::string& subject,
                    const std::string& text);

} // namespace maskwise::onednn
