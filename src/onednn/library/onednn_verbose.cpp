#include "onednn/library/onednn_verbose.hpp"

#include "base/environment.hpp"
#include "base/first_use.hpp"
#include "onednn/library/forward.hpp"
#include "onednn/library/real_library.hpp"

#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>

namespace maskwise::onednn {
namespace {

enum line_kinds : unsigned { no_lines = 0, exec_lines = 1, compile_lines = 2 };

unsigned kinds_of_level(std::int64_t level) {
    if (level <= 0) return no_lines;
    return level == 1 ? exec_lines : exec_lines | compile_lines;
}

unsigned kinds_of_word(std::string_view word) {
    if (word == "all" || word == "profile" || word == "2") return exec_lines | compile_lines;
    if (word == "profile_exec" || word == "1") return exec_lines;
    if (word == "profile_create") return compile_lines;
    return no_lines;
}

unsigned kinds_of_environment() {
    auto text = read_environment("ONEDNN_VERBOSE");
    if (!text) text = read_environment("DNNL_VERBOSE");
    unsigned kinds = no_lines;
    std::string_view rest = text.value_or("");
    while (!rest.empty()) {
        const auto comma = rest.find(',');
        kinds |= kinds_of_word(rest.substr(0, comma));
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    return kinds;
}

std::atomic<unsigned>& wanted_kinds() {
    return at_first_use<[] { return std::atomic<unsigned>(kinds_of_environment()); }>();
}

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
        text.append(role).append(std::to_string(i)).append("_").append(type_name(tensor.data_type));
        text.append(":").append(std::to_string(tensor.id)).append(":strided:");
        text.append(name_of(property_names, tensor.property, "undef")).append(":");
        text.append(join(tensor.dims, tensor.ndims, 'x')).append(":");
        text.append(join(tensor.layout.strides, tensor.ndims, 's'));
    }
}

void print_line(const char* event, const partition_line& from, const char* scratchpad_owner,
                double milliseconds) {
    const bool is_composite = from.kind == "composite";
    std::string line = "onednn_verbose,";
    if (real().at_least(3, 6)) line += "v1,"; // the line's version came with 3.6
    line.append("graph,").append(event).append(",cpu,").append(std::to_string(from.id));
    line.append(is_composite ? ",composite," : ",misc_post_ops,").append(from.names).append(",,");
    append_tensors(line, "in", from.inputs);
    append_tensors(line, "out", from.outputs);
    line.append(",fpm:").append(name_of(fpmath_names, from.fpmath_mode, "unknown"));
    if (from.fpmath_applies_to_int) line += ":true";
    if (real().at_least(3, 13)) {
        line += ",scratchpad:";
        if (scratchpad_owner != nullptr) line.append(scratchpad_owner).append(":");
        line += std::to_string(from.scratch_bytes);
    }
    line.append(",").append(from.kind);
    std::printf("%s,maskwise,%g\n", line.c_str(), milliseconds);
    std::fflush(stdout);
}

bool wanted(line_kinds kind) {
    return (wanted_kinds().load(std::memory_order_relaxed) & kind) != 0;
}

} // namespace

bool exec_lines_wanted() {
    return wanted(exec_lines);
}

bool compile_lines_wanted() {
    return wanted(compile_lines);
}

void print_compile_line(const partition_line& line, double milliseconds) {
    print_line("compile:cache_miss", line, nullptr, milliseconds);
}

void print_exec_line(const partition_line& line, const char* scratchpad_owner,
                     double milliseconds) {
    print_line("exec", line, scratchpad_owner, milliseconds);
}

} // namespace maskwise::onednn

MASKWISE_EXPORT int dnnl_set_verbose(int level) {
    using namespace maskwise::onednn;
    const auto status = call_real(&real_library::set_verbose, level);
    if (status == abi::success) wanted_kinds() = kinds_of_level(level);
    return status;
}
