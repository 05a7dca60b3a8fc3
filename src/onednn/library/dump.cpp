#include "onednn/library/dump.hpp"

#include "base/environment.hpp"
#include "base/first_use.hpp"
#include "onednn/library/forward.hpp"
#include "onednn/library/real_library.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <string_view>

namespace maskwise::onednn {
namespace {

// The words of the list are oneDNN's own to judge: where it writes nothing, a compile more is all
// that a wrong guess costs.
bool wanted_by_environment() {
    auto text = read_environment("ONEDNN_GRAPH_DUMP");
    if (!text) text = read_environment("DNNL_GRAPH_DUMP");
    if (!text) return false;
    constexpr std::string_view word = "subgraph";
    const auto is_same = [](unsigned char a, char b) { return std::tolower(a) == b; };
    return std::search(text->begin(), text->end(), word.begin(), word.end(), is_same) !=
           text->end();
}

std::atomic<bool>& wanted() {
    return at_first_use<[] { return std::atomic<bool>(wanted_by_environment()); }>();
}

} // namespace

bool subgraph_dump_wanted() {
    return wanted().load(std::memory_order_relaxed);
}

abi::status dnnl_graph_set_dump_mode(int modes) {
    const auto status = call_real(&real_library::set_dump_mode, modes);
    if (status == abi::success) wanted() = (modes & abi::dump_subgraph) != 0;
    return status;
}

} // namespace maskwise::onednn
