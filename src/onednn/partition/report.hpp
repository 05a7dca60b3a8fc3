#pragma once

#include "onednn/partition/executable.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace maskwise::onednn {

using milliseconds = std::chrono::duration<double, std::milli>;

// Whether report_executed would write anything.
bool executions_are_reported();

// The verbose lines in oneDNN's format and in Maskwise's, if they are wanted.
void report_compiled(const executable& compiled, milliseconds duration);
void report_executed(const executable& executed, bool has_scratchpad, milliseconds duration);

// The line of a partition that Maskwise claims ("claim") or leaves ("refuse"). `subject` is the
// kind of the partition, or the names of its operators.
void report_verdict(const char* verdict, std::size_t partition, const std::string& subject,
                    const std::string& text);

} // namespace maskwise::onednn
