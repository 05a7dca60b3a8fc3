#include "api.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace maskwise::fuzz {

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::abort();
}

namespace {

constexpr const char* create_scalar = "dnnl_graph_tensor_create_scalar";

void* real_library() {
    static void* const library = [] {
        void* const usual = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_NOLOAD);
        if (usual != nullptr) return usual;
        return dlopen("libdnnl.so.3.6", RTLD_NOW | RTLD_NOLOAD); // Debian's name
    }();
    return library;
}

void* find(const char* name) {
    void* const library = real_library();
    void* address = library == nullptr ? nullptr : dlsym(library, name);
    if (address != nullptr) return address;
    fail("no " + std::string(name) + " in the real library");
}

} // namespace

const api& with_plugin() {
#define X(name) dnnl_graph_##name,
    static const api calls{
        MASKWISE_FUZZ_CALLS(X) reinterpret_cast<decltype(api::tensor_create_scalar)>(
            dlsym(RTLD_DEFAULT, create_scalar))};
#undef X
    return calls;
}

const api& real() {
#define X(name) reinterpret_cast<decltype(&dnnl_graph_##name)>(find("dnnl_graph_" #name)),
    static const api calls{
        MASKWISE_FUZZ_CALLS(X) reinterpret_cast<decltype(api::tensor_create_scalar)>(
            dlsym(real_library(), create_scalar))};
#undef X
    return calls;
}

} // namespace maskwise::fuzz
