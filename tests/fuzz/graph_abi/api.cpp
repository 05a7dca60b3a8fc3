#include "api.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace maskwise::fuzz {

const api& with_plugin() {
#define X(name) dnnl_graph_##name,
    static const api calls{MASKWISE_FUZZ_CALLS(X)};
#undef X
    return calls;
}

namespace {

void* find(const char* name) {
    static void* const library = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_NOLOAD);
    void* address = library == nullptr ? nullptr : dlsym(library, name);
    if (address != nullptr) return address;
    std::fprintf(stderr, "no %s in the real library\n", name);
    std::abort();
}

} // namespace

const api& real() {
#define X(name) reinterpret_cast<decltype(&dnnl_graph_##name)>(find("dnnl_graph_" #name)),
    static const api calls{MASKWISE_FUZZ_CALLS(X)};
#undef X
    return calls;
}

} // namespace maskwise::fuzz
