#include "onednn/partition/report.hpp"

#include "base/verbose.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/client_settings.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

namespace maskwise::onednn {
namespace {

// By oneDNN's numbers; a number that a newer one adds gets the name `otherwise`.
template <std::size_t Count>
const char* name_of(const char* const (&names)[Count], int number, const char* otherwise) {
    const auto index = static_cast<std::size_t>(number);
    return index < Count ? names[index] : otherwise;
}

constexpr const char* type_names[] = {"undef", "f16", "bf16", "f32",    "s32",
                                      "s8",    "u8",  "f64",  "boolean"};
constexpr const char* property_names[] = {"undef", "variable", "constant", "host_scalar"};
constexpr const char* fpmath_names[] = {"strict", "bf16", "f16", "any", "tf32"};

const char* type_name(int type) {
    return type == abi::type_s64 ? "s64" : name_of(type_names, type, "undef");
}

// A 0-D tensor has no numbers to print: empty, where oneDNN prints whatever lies there.
std::string join(const std::int64_t* values, int count, char separator) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        if (i > 0) text += separator;
        text += std::to_string(values[i]);
    }
    return text;
}

void append_tensors(std::string& text, const char* role,
                    const std::vector<abi::logical_tensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const abi::logical_tensor& tensor = tensors[i];
        if (text.back() != ',') text += ' ';
        text += role + std::to_string(i) + '_' + type_name(tensor.data_type) + ':' +
                std::to_string(tensor.id) +
                ":strided:" + name_of(property_names, tensor.property, "undef") + ':' +
                join(tensor.dims, tensor.ndims, 'x') + ':' +
                join(tensor.layout.strides, tensor.ndims, 's');
    }
}

// In oneDNN's own format, so that tools that read ONEDNN_VERBOSE see Maskwise's partitions as well,
// with backend `maskwise`. Written to standard output like oneDNN's.
void print_onednn_line(const char* event, const executable& of, const char* scratchpad_owner,
                       milliseconds duration) {
    const graph_settings& settings = of.partition.settings;
    std::string line = "onednn_verbose,";
    if (real().at_least(3, 6)) line += "v1,"; // the line's version came with 3.6
    line += std::string("graph,") + event + ",cpu," + std::to_string(of.partition.id);
    line += of.kind() == partition_kind::composite ? ",composite," : ",misc_post_ops,";
    line += of.partition.names + ",,";
    append_tensors(line, "in", of.inputs());
    append_tensors(line, "out", of.outputs());
    line += std::string(",fpm:") + name_of(fpmath_names, settings.fpmath_mode, "unknown");
    if (settings.fpmath_applies_to_int) line += ":true";
    if (real().at_least(3, 13))
        line += std::string(",scratchpad:") + scratchpad_owner + std::to_string(of.scratch_bytes());
    std::printf("%s,%s,maskwise,%g\n", line.c_str(), name_of(of.kind()), duration.count());
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
