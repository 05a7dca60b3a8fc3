// The installed harness is not linked with a libdnnl. This file opens the machine's oneDNN 3 when
// the program starts. oneDNN's functions are bound at their first call.

#include <cstdio>
#include <dlfcn.h>

namespace {

// Debian's file names end in the minor version.
bool open_onednn() {
    constexpr int newest_minor = 30;
    if (dlopen("libdnnl.so.3", RTLD_LAZY | RTLD_GLOBAL) != nullptr) return true;
    for (int minor = newest_minor; minor > 0; --minor) {
        char name[32];
        std::snprintf(name, sizeof name, "libdnnl.so.3.%d", minor);
        if (dlopen(name, RTLD_LAZY | RTLD_GLOBAL) != nullptr) return true;
    }
    return false;
}

[[gnu::constructor]] void on_load() {
    if (dlsym(RTLD_DEFAULT, "dnnl_version") == nullptr && !open_onednn())
        std::fputs("maskwise-bench: no libdnnl.so.3 found\n", stderr);
}

} // namespace
