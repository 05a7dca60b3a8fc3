#pragma once

#include "onednn/library/abi.hpp"

#include <string>

namespace maskwise::onednn {

// The oneDNN behind the plugin: its functions by pointer, never by exported name, since the
// exported names are Maskwise's own. A pointer is null where that library does not have the
// function.
struct real_library {
#define FORWARD(name, since, parameters, arguments) abi::status(*name) parameters = nullptr;
#include "onednn/library/functions.inc"
    abi::status (*stream_wait)(abi::stream) = nullptr;
    abi::status (*engine_get_kind)(abi::engine, int*) = nullptr;
    abi::status (*set_verbose)(int) = nullptr;
    // sycl::event::wait(const std::vector<sycl::event>&), from the SYCL runtime of the process.
    void (*sycl_wait_for_events)(const void*) = nullptr;

    const char* file = "";  // where the library was loaded from; empty when there is none
    abi::version version{}; // all zero when there is none
    const char* how = "";   // "next in search order", "already loaded", "opened"

    bool found() const {
        return graph_create != nullptr;
    }
    bool at_least(int major, int minor) const {
        return version.major > major || (version.major == major && version.minor >= minor);
    }
    bool is_sycl() const {
        return version.cpu_runtime == abi::runtime_sycl;
    }
};

// Looked up on first use and kept for ever: exit handlers of the client may still destroy handles.
// Any thread. When no libdnnl with the Graph API can be found, says so once on standard error.
const real_library& real() noexcept;

// Whether real() has been called yet.
bool real_is_looked_up();

// The real function with these arguments; `unimplemented` where the library lacks it. Its
// exceptions pass through.
template <typename... Parameters, typename... Arguments>
abi::status call_real(abi::status (*real_library::*member)(Parameters...), Arguments... arguments) {
    const auto function = real().*member;
    return function != nullptr ? function(arguments...) : abi::unimplemented;
}

// The same by name: real_<name> is the real library's dnnl_graph_<name>.
#define FORWARD(name, since, parameters, arguments)                                                \
    inline abi::status real_##name parameters {                                                    \
        const auto function = real().name;                                                         \
        return function != nullptr ? function arguments : abi::unimplemented;                      \
    }
#include "onednn/library/functions.inc"

// Throws what Maskwise's entry points answer by the same status, with the call's name:
// std::bad_alloc, shape_error, and argument_error for all others but success.
void require_success(abi::status status, const char* call);

bool is_cpu_engine(abi::engine engine);

// Whether the real library is newer than any that this plugin knows the functions of.
bool real_is_newer_than_known();

// The lowest address of the loaded object that holds this one; null if none does.
const void* base_of(const void* address) noexcept;

// Whether the address lies in this shared object, and not in another copy of it or in oneDNN.
bool is_this_plugin(const void* address);

} // namespace maskwise::onednn
