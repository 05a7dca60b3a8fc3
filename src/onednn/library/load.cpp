// Lines about the plugin's place in the process, when it is loaded and when the process ends.

#include "base/environment.hpp"
#include "base/verbose.hpp"
#include "onednn/library/active.hpp"
#include "onednn/library/find_loaded.hpp"
#include "onednn/library/real_library.hpp"

#include <cstdio>
#include <dlfcn.h>

namespace maskwise::onednn {
namespace {

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
    // One that comes later has its line at the first call that reaches the plugin.
    if (verbose_level() >= 1 && onednn_is_in_process()) why_inactive();
}

// A host may bind oneDNN's functions past the plugin (dlsym, RTLD_DEEPBIND, -Bsymbolic): the plugin
// then looks as if it worked.
[[gnu::destructor]] void on_unload() {
    if (verbose_level() < 1 || real_is_looked_up()) return;
    if (read_environment_number("MASKWISE_DISABLE") != 0) return;
    if (const char* const file = find_loaded_onednn())
        std::fprintf(stderr,
                     "maskwise,idle,%s is in the process; no call of its Graph API came "
                     "through the plugin\n",
                     file);
}

} // namespace
} // namespace maskwise::onednn
