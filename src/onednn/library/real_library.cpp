#include "onednn/library/real_library.hpp"

#include "base/error.hpp"
#include "base/first_use.hpp"
#include "onednn/library/find_onednn.hpp"
#include "onednn/library/next_dlsym.hpp"

#include <atomic>
#include <climits>
#include <cstdio>
#include <dlfcn.h>
#include <new>
#include <string>

namespace maskwise::onednn {
namespace {

void* open_loaded(const char* file) noexcept {
    return file != nullptr ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

// Looks the probe function up by `handle`. Returns a handle of the library that defines this
// function; null if the function is missing or the plugin's. dlsym also searches dependencies, so
// any library that links oneDNN leads to oneDNN.
void* owner_of_probe(void* handle) {
    const void* const probe = find_symbol(handle, probe_name);
    if (probe == nullptr || is_this_plugin(probe)) return nullptr;
    return open_loaded(file_of(probe));
}

void* open_foreign(const char* name) {
    void* handle = dlopen(name, RTLD_LAZY | RTLD_GLOBAL);
    if (handle == nullptr) return nullptr;
    void* const owner = owner_of_probe(handle);
    dlclose(handle);
    return owner;
}

void* find_handle(const char*& how) {
    if (const void* next = find_symbol(RTLD_NEXT, probe_name);
        next != nullptr && !is_this_plugin(next)) {
        how = "next in search order";
        return RTLD_NEXT;
    }
    // RTLD_NEXT does not find a oneDNN opened with RTLD_LOCAL, as Python opens extensions. A oneDNN
    // may have any name, such as libonednn_cpu_so.so in Intel's TensorFlow extension.
    how = "already loaded";
    if (void* handle = open_loaded(find_loaded_onednn())) return handle;
    how = "opened";
    return first_by_soname(open_foreign);
}

template <typename Function>
void resolve(void* handle, const char* name, Function*& slot) {
    void* address = find_symbol(handle, name);
    if (address == nullptr || is_this_plugin(address)) return;
    slot = reinterpret_cast<Function*>(address);
}

void resolve_all(real_library& library, void* handle) {
#define FORWARD(name, since, parameters, arguments)                                                \
    resolve(handle, "dnnl_graph_" #name, library.name);
#include "onednn/library/functions.inc"
    resolve(handle, "dnnl_stream_wait", library.stream_wait);
    resolve(handle, "dnnl_engine_get_kind", library.engine_get_kind);
    resolve(handle, "dnnl_set_verbose", library.set_verbose);
}

void describe(real_library& library, void* handle) {
    const abi::version* (*get_version)() = nullptr;
    resolve(handle, "dnnl_version", get_version);
    if (get_version != nullptr) library.version = *get_version();
    if (const char* file = file_of(reinterpret_cast<const void*>(library.graph_create)))
        library.file = file;
    if (!library.is_sycl()) return;
    // Searches the global scope, then oneDNN's dependencies, because the SYCL runtime may not be
    // global.
    constexpr const char* wait_name = "_ZN4sycl3_V15event4waitERKSt6vectorIS1_SaIS1_EE";
    resolve(RTLD_DEFAULT, wait_name, library.sycl_wait_for_events);
    if (library.sycl_wait_for_events == nullptr)
        resolve(handle, wait_name, library.sycl_wait_for_events);
}

// Also names a libdnnl that lacks the Graph API, if there is one.
void report_missing() noexcept {
    void* const get_version = first_by_soname([](const char* name) {
        void* const handle = dlopen(name, RTLD_LAZY);
        return handle != nullptr ? find_symbol(handle, "dnnl_version") : nullptr;
    });
    char other[PATH_MAX + 64] = "";
    if (const char* const file = file_of(get_version)) {
        const auto& version = *reinterpret_cast<const abi::version* (*)()>(get_version)();
        std::snprintf(other, sizeof other, "; found %s, oneDNN %d.%d.%d, which has no Graph API",
                      file, version.major, version.minor, version.patch);
    }
    std::fprintf(stderr,
                 "maskwise: no libdnnl with the Graph API found (searched: next in the link order, "
                 "libraries already loaded, libdnnl.so.3)%s; every dnnl_graph function answers "
                 "`unimplemented`\n",
                 other);
}

std::atomic<bool> is_looked_up = false;

real_library load() noexcept {
    is_looked_up = true;
    real_library library;
    void* handle = find_handle(library.how);
    if (handle != nullptr) resolve_all(library, handle);
    if (library.is_found())
        describe(library, handle);
    else
        report_missing();
    return library;
}

} // namespace

// Compares with a hidden symbol, because an exported symbol may resolve to another library.
bool is_this_plugin(const void* address) {
    return base_of(address) == base_of(reinterpret_cast<const void*>(&real));
}

const real_library& real() noexcept {
    return at_first_use<load>();
}

bool real_is_looked_up() {
    return is_looked_up;
}

void require_success(abi::status status, const char* call) {
    if (status == abi::success) return;
    if (status == abi::out_of_memory) throw std::bad_alloc();
    const std::string text = "oneDNN answers status " + std::to_string(status) + " to " + call;
    if (status == abi::invalid_shape) throw shape_error(text);
    throw argument_error(text);
}

bool is_cpu_engine(abi::engine engine) {
    int kind = 0;
    return call_real(&real_library::engine_get_kind, engine, &kind) == abi::success &&
           kind == abi::engine_cpu;
}

// Minor version of the newest oneDNN that the plugin knows. A test defines this macro to imitate an
// older Maskwise.
#ifndef MASKWISE_NEWEST_KNOWN_MINOR
#define MASKWISE_NEWEST_KNOWN_MINOR 14
#endif

bool real_is_newer_than_known() {
    return real().at_least(3, MASKWISE_NEWEST_KNOWN_MINOR + 1);
}

} // namespace maskwise::onednn
