#pragma once

#include <cstdio>

namespace maskwise::onednn {

// Any function that every oneDNN with the Graph API has; tells such a library.
inline constexpr const char* probe_name = "dnnl_graph_graph_create";

// The first answer of `function(soname)` that is not null: oneDNN's own name first, then Debian's,
// which end in the minor version.
template <typename Function>
void* first_by_soname(Function&& function) {
    if (void* handle = function("libdnnl.so.3")) return handle;
    constexpr int newest_minor = 30;
    for (int minor = newest_minor; minor > 0; --minor) {
        char name[32];
        std::snprintf(name, sizeof name, "libdnnl.so.3.%d", minor);
        if (void* handle = function(name)) return handle;
    }
    return function("libdnnl.so");
}

} // namespace maskwise::onednn
