#pragma once

#include "onednn/partition/executable.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace maskwise::onednn {

using milliseconds = std::chrono::duration<double, std::milli>;

// Whether report_executed would write anything.
bool executions_are_reported();

// The verbose lines of oneDNN's format and of Maskwise's own, where they are wanted.
void report_compiled(const executable& compiled, milliseconds duration);
void report_executed(const executable& executed, bool has_scratchpad, milliseconds duration);

// The line of a partition that is Maskwise's ("claim") or could have been ("refuse"); `subject` is
// "composite", or the names of the operators.
void report_verdict(const char* verdict, std::size_t partition, const std::string& subject,
                    const std::string& text);

} // namespace maskwise::onednn
