// What happens when the plugin is loaded: at most a line that says what it stands before, and a
// warning when it stands behind.

#include "base/cpu.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/verbose.hpp"
#include "onednn/active.hpp"
#include "onednn/real_library.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <string>

namespace maskwise::onednn {
namespace {

std::string isa_text() {
    try {
        return std::string(to_string(active_isa()));
    } catch (const error& failure) {
        return failure.what();
    }
}

const char* runtime_text(unsigned runtime) {
    switch (runtime) {
    case 1:
        return "sequential";
    case 2:
        return "openmp";
    case 4:
        return "tbb";
    case abi::runtime_threadpool:
        return "threadpool";
    case abi::runtime_sycl:
        return "sycl";
    default:
        return "unknown runtime";
    }
}

// A libtbb older than oneDNN's own is the first thing to look for where oneDNN finds no CPU.
std::string tbb_text() {
    Dl_info info{};
    const void* address = dlsym(RTLD_DEFAULT, "TBB_runtime_interface_version");
    return dladdr(address, &info) != 0 ? info.dli_fname : "not loaded";
}

void print_load_line() {
    const auto& library = real();
    const auto& version = library.version;
    print_verbose("load,version " MASKWISE_VERSION ",oneDNN " + std::to_string(version.major) +
                  '.' + std::to_string(version.minor) + '.' + std::to_string(version.patch) + ' ' +
                  runtime_text(version.cpu_runtime) + ',' + library.file + " (" + library.how +
                  "),libtbb " + tbb_text() + ",target " + isa_text() +
                  (active() ? ",active" : std::string(",inactive: ") + why_inactive()));
}

bool onednn_is_in_process() {
    return dlsym(RTLD_NEXT, "dnnl_graph_graph_create") != nullptr;
}

// Linked behind libdnnl, every call of the program goes past the plugin, silently otherwise. Behind
// another copy of itself the plugin stays out of the way.
void warn_if_behind() {
    const void* first = dlsym(RTLD_DEFAULT, "dnnl_graph_graph_create");
    if (first == nullptr || is_this_plugin(first)) return;
    Dl_info info{};
    dladdr(first, &info);
    const char* const advice = another_copy_is_in_front()
                                   ? "the plugin is loaded twice, this copy stays inactive"
                                   : "link maskwise_onednn before dnnl, or use LD_PRELOAD";
    std::fprintf(stderr,
                 "maskwise: loaded, but the program's oneDNN Graph calls go to %s first; %s\n",
                 info.dli_fname != nullptr ? info.dli_fname : "another library", advice);
}

[[gnu::constructor]] void on_load() {
    if (read_environment_number("MASKWISE_DISABLE") != 0) return;
    warn_if_behind();
    // Programs without oneDNN inherit LD_PRELOAD, too: nothing is opened and nothing said for them.
    if (verbose_level() >= 1 && onednn_is_in_process()) print_load_line();
}

} // namespace
} // namespace maskwise::onednn
