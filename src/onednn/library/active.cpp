#include "onednn/library/active.hpp"

#include "base/cpu.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/first_use.hpp"
#include "base/verbose.hpp"
#include "onednn/library/find_onednn.hpp"
#include "onednn/library/next_dlsym.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/state.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <iterator>
#include <new>
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
    if (runtime == abi::runtime_threadpool) return "threadpool";
    if (runtime == abi::runtime_sycl) return "sycl";
    constexpr const char* others[] = {"unknown runtime", "sequential", "openmp", "unknown runtime",
                                      "tbb"};
    return others[runtime < std::size(others) ? runtime : 0];
}

// A libtbb older than oneDNN's own is the first thing to look for where oneDNN finds no CPU.
std::string tbb_text() {
    const char* const file = file_of(find_symbol(RTLD_DEFAULT, "TBB_runtime_interface_version"));
    return file != nullptr ? file : "not loaded";
}

// The line of a process in which oneDNN was found: which it is, what else Maskwise uses, and why
// Maskwise is inactive, or null.
void print_load_line(const real_library& library, const char* why_inactive) noexcept try {
    print_verbose(
        "load,version " MASKWISE_VERSION ",oneDNN " + to_string(library.version) + ' ' +
        runtime_text(library.version.cpu_runtime) + ',' + library.file + " (" + library.how +
        "),libtbb " + tbb_text() + ",target " + isa_text() +
        (why_inactive == nullptr ? ",active" : std::string(",inactive: ") + why_inactive));
} catch (const std::bad_alloc&) {
}

// Whether the plugin was loaded twice, under two file names, and this is not the copy that the
// program's calls reach first: that one does the work.
bool another_copy_is_in_front() {
    const void* first = find_symbol(RTLD_DEFAULT, "maskwise_onednn_owns");
    return first != nullptr && !is_this_plugin(first);
}

bool is_switched_off() {
    return read_environment_number("MASKWISE_DISABLE") != 0;
}

const char* reason_of(const real_library& library) {
    if (is_switched_off()) return "MASKWISE_DISABLE is set";
    if (!library.found()) return "no oneDNN with the Graph API";
    if (library.version.major != 3 || !library.at_least(3, 2))
        return "only oneDNN 3.2 and later 3.x are known";
    if (library.version.cpu_runtime == abi::runtime_threadpool)
        return "pools of the threadpool runtime may be asynchronous";
    if (another_copy_is_in_front()) return "another copy of the plugin stands in front";
    return nullptr;
}

// Read by maskwise-info in the memory of this process.
char state[1024] =
    "maskwise state: not asked yet: no call of the Graph API came through the plugin";

void keep_state(const char* why_inactive) {
    const bool is_active = why_inactive == nullptr;
    std::snprintf(state, sizeof state, "%s%s%s%s%s", state_marker,
                  is_active ? "active" : "inactive: ", is_active ? "" : why_inactive,
                  real().found() ? ", oneDNN " : "",
                  real().found() ? to_string(real().version).c_str() : "");
}

// Null, or why Maskwise is inactive.
const char* decide() {
    const char* const reason = reason_of(real());
    keep_state(reason);
    if (verbose_level() >= 1 && real().found()) print_load_line(real(), reason);
    return reason;
}

// Linked behind libdnnl, every call of the program goes past the plugin, silently otherwise. Behind
// another copy of itself the plugin stays out of the way.
void warn_if_behind() {
    const void* first = find_symbol(RTLD_DEFAULT, probe_name);
    if (first == nullptr || is_this_plugin(first)) return;
    const char* const file = file_of(first);
    std::fprintf(
        stderr, "maskwise: loaded, but the program's oneDNN Graph calls go to %s first; %s\n",
        file != nullptr ? file : "another library",
        another_copy_is_in_front() ? "the plugin is loaded twice, this copy stays inactive"
                                   : "link maskwise_onednn before dnnl, or use LD_PRELOAD");
}

[[gnu::constructor]] void on_load() {
    if (!is_switched_off()) warn_if_behind();
    // Programs without oneDNN inherit LD_PRELOAD, too: nothing is opened and nothing said for them.
    // One that comes later has its line at the first call that reaches the plugin.
    if (verbose_level() >= 1 && find_symbol(RTLD_NEXT, probe_name) != nullptr) active();
}

// A host may bind oneDNN's functions past the plugin (dlsym, RTLD_DEEPBIND, -Bsymbolic): the plugin
// then looks as if it worked.
[[gnu::destructor]] void on_unload() {
    if (verbose_level() < 1 || real_is_looked_up() || is_switched_off()) return;
    if (const char* const file = find_loaded_onednn())
        std::fprintf(stderr,
                     "maskwise,idle,%s is in the process; no call of its Graph API came "
                     "through the plugin\n",
                     file);
}

} // namespace

bool active() {
    return at_first_use<decide>() == nullptr;
}

} // namespace maskwise::onednn
