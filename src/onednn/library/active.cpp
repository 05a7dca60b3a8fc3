#include "onednn/library/active.hpp"

#include "base/cpu.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/first_use.hpp"
#include "base/verbose.hpp"
#include "onednn/library/real_library.hpp"

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
    Dl_info info{};
    const void* address = dlsym(RTLD_DEFAULT, "TBB_runtime_interface_version");
    return dladdr(address, &info) != 0 ? info.dli_fname : "not loaded";
}

// The line of a process in which oneDNN was found: which it is, what else Maskwise uses, and why
// Maskwise is inactive, or null.
void print_load_line(const real_library& library, const char* why_inactive) noexcept try {
    const auto& version = library.version;
    print_verbose(
        "load,version " MASKWISE_VERSION ",oneDNN " + std::to_string(version.major) + '.' +
        std::to_string(version.minor) + '.' + std::to_string(version.patch) + ' ' +
        runtime_text(version.cpu_runtime) + ',' + library.file + " (" + library.how + "),libtbb " +
        tbb_text() + ",target " + isa_text() +
        (why_inactive == nullptr ? ",active" : std::string(",inactive: ") + why_inactive));
} catch (const std::bad_alloc&) {
}

const char* reason_of(const real_library& library) {
    if (!library.found()) return "no oneDNN with the Graph API";
    if (library.version.major != 3 || !library.at_least(3, 2))
        return "only oneDNN 3.2 and later 3.x are known";
    if (library.version.cpu_runtime == abi::runtime_threadpool)
        return "pools of the threadpool runtime may be asynchronous";
    if (another_copy_is_in_front()) return "another copy of the plugin stands in front";
    return nullptr;
}

const char* decide() {
    if (read_environment_number("MASKWISE_DISABLE") != 0) return "MASKWISE_DISABLE is set";
    const char* const reason = reason_of(real());
    if (verbose_level() >= 1 && real().found()) print_load_line(real(), reason);
    return reason;
}

} // namespace

const char* why_inactive() {
    return at_first_use<decide>();
}

bool active() {
    return why_inactive() == nullptr;
}

// A copy loaded under another file name: the one that the program's calls reach does the work.
bool another_copy_is_in_front() {
    const void* first = dlsym(RTLD_DEFAULT, "maskwise_onednn_owns");
    return first != nullptr && !is_this_plugin(first);
}

} // namespace maskwise::onednn
