#include "api.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace maskwise::fuzz {

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
}

const api& with_plugin() {
#define X(name) dnnl_graph_##name,
    static const api calls{MASKWISE_FUZZ_CALLS(X)};
#undef X
    return calls;
}

namespace {

void* find(const char* name) {
    static void* const library = [] {
        void* const usual = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_NOLOAD);
        return usual != nullptr ? usual : dlopen("libdnnl.so.3.6", RTLD_NOW | RTLD_NOLOAD);
    }(); // Debian's has a name of its own
    void* address = library == nullptr ? nullptr : dlsym(library, name);
    if (address != nullptr) return address;
    fail("no " + std::string(name) + " in the real library");
}

} // namespace

const api& real() {
#define X(name) reinterpret_cast<decltype(&dnnl_graph_##name)>(find("dnnl_graph_" #name)),
    static const api calls{MASKWISE_FUZZ_CALLS(X)};
#undef X
    return calls;
}

dnnl_engine_t engine() {
    static dnnl_engine_t made = nullptr;
    if (made == nullptr) dnnl_engine_create(&made, dnnl_cpu, 0);
    return made;
}

dnnl_stream_t stream() {
    static dnnl_stream_t made = nullptr;
    if (made == nullptr) dnnl_stream_create(&made, engine(), dnnl_stream_default_flags);
    return made;
}

} // namespace maskwise::fuzz
