#include "onednn/partition/report.hpp"

#include "base/verbose.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/onednn_verbose.hpp"

#include <string>

namespace maskwise::onednn {
namespace {

partition_line line_of(const executable& from) {
    const auto& [id, names, settings] = from.partition;
    return {id,
            names,
            from.inputs(),
            from.outputs(),
            settings.fpmath_mode,
            settings.fpmath_applies_to_int,
            name_of(from.kind()),
            from.scratch_bytes()};
}

} // namespace

bool executions_are_reported() {
    return exec_lines_wanted() || verbose_level() >= 2;
}

void report_compiled(const executable& compiled, milliseconds duration) {
    if (compile_lines_wanted()) print_compile_line(line_of(compiled), duration.count());
    if (verbose_level() >= 2)
        print_verbose("compile," + std::to_string(compiled.partition.id) + ',' +
                      compiled.describe());
}

void report_executed(const executable& executed, bool has_scratchpad, milliseconds duration) {
    const bool is_users = has_scratchpad && executed.kind() == partition_kind::composite;
    if (exec_lines_wanted())
        print_exec_line(line_of(executed), is_users ? "user" : "library", duration.count());
    if (verbose_level() >= 2)
        print_verbose("exec," + std::to_string(executed.partition.id) + ',' +
                      std::to_string(duration.count()) + " ms");
}

void report_verdict(const char* verdict, std::size_t partition, const std::string& subject,
                    const std::string& text) {
    if (verbose_level() < 1) return;
    guarded([&] {
        print_verbose(std::string(verdict) + ',' + std::to_string(partition) + ',' + subject + ',' +
                      text);
    });
}

} // namespace maskwise::onednn
