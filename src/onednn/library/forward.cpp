#include "onednn/library/forward.hpp"

#include "onednn/library/real_library.hpp"

// Forwarders are not noexcept and catch nothing, because the client's callbacks and libdnnl throw
// through C functions. Their exceptions must reach the caller.
namespace maskwise::onednn {
#define HOOK(name, since, parameters, arguments)
#define FORWARD(name, since, parameters, arguments)                                                \
    abi::status dnnl_graph_##name parameters {                                                     \
        return real_##name arguments;                                                              \
    }
#include "onednn/library/functions.inc"
} // namespace maskwise::onednn
