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

// The load line names libtbb: if oneDNN finds no CPU device, libtbb is usually older than the
// version that oneDNN was built with.
std::string tbb_text() {
    const char* const file = file_of(find_symbol(RTLD_DEFAULT, "TBB_runtime_interface_version"));
    return file != nullptr ? file : "not loaded";
}

// `why_inactive` is null if Maskwise is active.
void print_load_line(const real_library& library, const char* why_inactive) noexcept try {
    print_verbose(
        "load,version " MASKWISE_VERSION ",oneDNN " + to_string(library.version) + ' ' +
        runtime_text(library.version.cpu_runtime) + ',' + library.file + " (" + library.how +
        "),libtbb " + tbb_text() + ",target " + isa_text() +
        (why_inactive == nullptr ? ",active" : std::string(",inactive: ") + why_inactive));
} catch (const std::bad_alloc&) {
}

// Whether the program's calls reach another copy of the plugin first. A process has two copies if
// it loads the plugin under two file names.
bool another_copy_is_first() {
    const void* first = find_symbol(RTLD_DEFAULT, "maskwise_onednn_owns");
    return first != nullptr && !is_this_plugin(first);
}

bool is_switched_off() {
    return read_environment_number("MASKWISE_DISABLE") != 0;
}

const char* reason_against(const real_library& library) {
    if (is_switched_off()) return "MASKWISE_DISABLE is set";
    if (!library.is_found()) return "no oneDNN with the Graph API";
    if (library.version.major != 3 || !library.at_least(3, 2))
        return "only oneDNN 3.2 and later 3.x are known";
    if (library.version.cpu_runtime == abi::runtime_threadpool)
        return "pools of the threadpool runtime may be asynchronous";
    if (another_copy_is_first()) return "another copy of the plugin gets the calls first";
    return nullptr;
}

// maskwise-info reads this text from the process's memory.
char state[1024] =
    MASKWISE_STATE_MARKER "not decided yet: no call of the Graph API came through the plugin";

void store_state(const char* why_inactive) {
    const bool is_active = why_inactive == nullptr;
    std::snprintf(state, sizeof state, MASKWISE_STATE_MARKER "%s%s%s%s",
                  is_active ? "active" : "inactive: ", is_active ? "" : why_inactive,
                  real().is_found() ? ", oneDNN " : "",
                  real().is_found() ? to_string(real().version).c_str() : "");
}

// Returns null if Maskwise is active, else the reason. Stores the decision for maskwise-info.
// Prints the load line if verbose lines are on and oneDNN was found.
const char* find_reason() {
    const char* const reason = reason_against(real());
    store_state(reason);
    if (verbose_level() >= 1 && real().is_found()) print_load_line(real(), reason);
    return reason;
}

// The program's calls do not reach the plugin if it is linked after libdnnl, or if another copy of
// the plugin is first. Without a warning, the user would not notice.
void warn_if_unreached() {
    const void* first = find_symbol(RTLD_DEFAULT, probe_name);
    if (first == nullptr || is_this_plugin(first)) return;
    const char* const file = file_of(first);
    std::fprintf(stderr,
                 "maskwise: loaded, but the program's oneDNN Graph calls go to %s first; %s\n",
                 file != nullptr ? file : "another library",
                 another_copy_is_first() ? "the plugin is loaded twice, this copy stays inactive"
                                         : "link maskwise_onednn before dnnl, or use LD_PRELOAD");
}

[[gnu::constructor]] void on_load() {
    if (!is_switched_off()) warn_if_unreached();
    // A program without oneDNN may inherit LD_PRELOAD. In such a program, the plugin opens and
    // prints nothing. If the program loads oneDNN later, the first call that reaches the plugin
    // prints the load line.
    if (verbose_level() >= 1 && find_symbol(RTLD_NEXT, probe_name) != nullptr) active();
}

// The line `maskwise,idle` shows that the plugin did nothing, because the host bound oneDNN's
// functions directly, for example by RTLD_DEEPBIND or -Bsymbolic.
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
    return at_first_use<find_reason>() == nullptr;
}

} // namespace maskwise::onednn
