#include "onednn/partition/report.hpp"

#include "base/verbose.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/client_settings.hpp"
#include "onednn/record/names.hpp"
#include "onednn/record/translate.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

namespace maskwise::onednn {
namespace {

// Empty for a 0-D tensor, for which oneDNN prints uninitialized memory.
std::string join(const dims& values, char separator) {
    std::string text;
    for (int i = 0; i < values.rank(); ++i) {
        if (i > 0) text += separator;
        text += std::to_string(values[i]);
    }
    return text;
}

void append_tensors(std::string& text, const char* role, const tensor_list& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const logical_tensor& tensor = tensors[i];
        if (text.back() != ',') text += ' ';
        text += role + std::to_string(i) + '_' + data_type_name(to_abi(tensor).data_type) + ':' +
                std::to_string(tensor.id) +
                ":strided:" + property_name(static_cast<int>(tensor.property)) + ':' +
                join(tensor.extents, 'x') + ':' + join(tensor.strides_elems, 's');
    }
}

// Prints a line in oneDNN's format on standard output, with backend `maskwise`, for tools that
// parse ONEDNN_VERBOSE.
void print_onednn_line(const char* event, const executable& compiled, const char* scratchpad_owner,
                       milliseconds duration) {
    const graph_settings& settings = compiled.partition.settings;
    std::string line = "onednn_verbose,";
    if (real().at_least(3, 6)) line += "v1,"; // oneDNN 3.6 added the line's version
    line += std::string("graph,") + event + ",cpu," + std::to_string(compiled.partition.id);
    line += compiled.kind() == partition_kind::composite ? ",composite," : ",misc_post_ops,";
    line += compiled.partition.names + ",,";
    append_tensors(line, "in", compiled.inputs());
    append_tensors(line, "out", compiled.outputs());
    line += std::string(",fpm:") + fpmath_name(settings.fpmath_mode);
    if (settings.fpmath_applies_to_int) line += ":true";
    if (real().at_least(3, 13))
        line += std::string(",scratchpad:") + scratchpad_owner +
                std::to_string(compiled.scratch_bytes());
    std::printf("%s,%s,maskwise,%g\n", line.c_str(), name_of(compiled.kind()), duration.count());
    std::fflush(stdout);
}

} // namespace

bool executions_are_reported() {
    return exec_lines_wanted() || verbose_level() >= 2;
}

void report_compiled(const executable& compiled, milliseconds duration) {
    if (compile_lines_wanted()) print_onednn_line("compile:cache_miss", compiled, "", duration);
    if (verbose_level() >= 2)
        print_verbose("compile," + std::to_string(compiled.partition.id) + ',' +
                      compiled.describe());
}

void report_executed(const executable& executed, bool has_scratchpad, milliseconds duration) {
    const bool is_users = has_scratchpad && executed.kind() == partition_kind::composite;
    if (exec_lines_wanted())
        print_onednn_line("exec", executed, is_users ? "user:" : "library:", duration);
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
