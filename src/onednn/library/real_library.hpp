#pragma once

#include "onednn/library/abi.hpp"

#include <string>

namespace maskwise::onednn {

// Pointers to the real oneDNN's functions, because the exported names are Maskwise's. A pointer is
// null if the library lacks the function.
struct real_library {
#define FORWARD(name, since, parameters, arguments) abi::status(*name) parameters = nullptr;
#include "onednn/library/functions.inc"
    abi::status (*stream_wait)(abi::stream) = nullptr;
    abi::status (*engine_get_kind)(abi::engine, int*) = nullptr;
    abi::status (*set_verbose)(int) = nullptr;
    // sycl::event::wait(const std::vector<sycl::event>&) of the SYCL runtime.
    void (*sycl_wait_for_events)(const void*) = nullptr;

    const char* file = "";  // empty if there is no library
    abi::version version{}; // all zero if there is no library
    const char* how = "";   // "next in search order", "already loaded", "opened"

    bool is_found() const {
        return graph_create != nullptr;
    }
    bool at_least(int major, int minor) const {
        return version.major > major || (version.major == major && version.minor >= minor);
    }
    bool is_sycl() const {
        return version.cpu_runtime == abi::runtime_sycl;
    }
};

// The first call, from any thread, looks the library up. If there is no libdnnl with the Graph API,
// that call prints one line on standard error. The library is never unloaded, because the client's
// exit handlers may still destroy handles.
const real_library& real() noexcept;

// Whether real() has been called.
bool real_is_looked_up();

// Calls the real function, or returns `unimplemented` if there is none. The function's exceptions
// pass through.
template <typename... Parameters, typename... Arguments>
abi::status call_real(abi::status (*real_library::*member)(Parameters...), Arguments... arguments) {
    const auto function = real().*member;
    return function != nullptr ? function(arguments...) : abi::unimplemented;
}

// real_<name> calls the real library's dnnl_graph_<name> in the same way.
#define FORWARD(name, since, parameters, arguments)                                                \
    inline abi::status real_##name parameters {                                                    \
        const auto function = real().name;                                                         \
        return function != nullptr ? function arguments : abi::unimplemented;                      \
    }
#include "onednn/library/functions.inc"

// Throws std::bad_alloc for out_of_memory, shape_error for invalid_shape, and argument_error for
// any other failure. The text names the status and the call.
void require_success(abi::status status, const char* call);

bool is_cpu_engine(abi::engine engine);

// Whether the real library may have functions that the plugin does not know.
bool real_is_newer_than_known();

// Whether the address is in this shared object, not in another copy of the plugin or in oneDNN.
bool is_this_plugin(const void* address);

} // namespace maskwise::onednn
