#include "onednn/library/active.hpp"

#include "base/environment.hpp"
#include "base/first_use.hpp"
#include "base/verbose.hpp"
#include "onednn/library/load_line.hpp"
#include "onednn/library/real_library.hpp"

#include <dlfcn.h>

namespace maskwise::onednn {
namespace {

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
