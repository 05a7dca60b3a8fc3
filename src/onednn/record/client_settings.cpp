#include "onednn/record/client_settings.hpp"

#include "base/environment.hpp"
#include "base/first_use.hpp"
#include "onednn/library/forward.hpp"
#include "onednn/library/real_library.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <string_view>

namespace maskwise::onednn {
namespace {

std::string_view first_of_environment(const char* name, const char* older_name) {
    const auto text = read_environment(name);
    return text ? *text : read_environment(older_name).value_or("");
}

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

std::atomic<unsigned> kinds_of_environment() {
    unsigned kinds = no_lines;
    auto rest = first_of_environment("ONEDNN_VERBOSE", "DNNL_VERBOSE");
    while (!rest.empty()) {
        const auto word = rest.substr(0, rest.find(','));
        kinds |= kinds_of_word(word);
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    return kinds;
}

// Looks for the keyword anywhere, because only oneDNN knows the syntax. After a false match, oneDNN
// compiles once more than needed and writes nothing.
std::atomic<bool> dump_of_environment() {
    const auto text = first_of_environment("ONEDNN_GRAPH_DUMP", "DNNL_GRAPH_DUMP");
    constexpr std::string_view word = "subgraph";
    const auto is_same = [](unsigned char a, char b) { return std::tolower(a) == b; };
    return std::search(text.begin(), text.end(), word.begin(), word.end(), is_same) != text.end();
}

auto& wanted_lines() {
    return at_first_use<kinds_of_environment>();
}

auto& wanted_dump() {
    return at_first_use<dump_of_environment>();
}

bool is_wanted(line_kinds kind) {
    return (wanted_lines().load(std::memory_order_relaxed) & kind) != 0;
}

} // namespace

bool exec_lines_wanted() {
    return is_wanted(exec_lines);
}

bool compile_lines_wanted() {
    return is_wanted(compile_lines);
}

bool subgraph_dump_wanted() {
    return wanted_dump().load(std::memory_order_relaxed);
}

abi::status dnnl_graph_set_dump_mode(int modes) {
    const auto status = real_set_dump_mode(modes);
    if (status == abi::success) wanted_dump() = (modes & abi::dump_subgraph) != 0;
    return status;
}

} // namespace maskwise::onednn

MASKWISE_EXPORT int dnnl_set_verbose(int level) {
    using namespace maskwise::onednn;
    const auto status = call_real(&real_library::set_verbose, level);
    if (status == abi::success) wanted_lines() = kinds_of_level(level);
    return status;
}
