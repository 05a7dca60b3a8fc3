#include "onednn/library/forward.hpp"

#include "onednn/library/real_library.hpp"

// Not noexcept and without a handler: callbacks of the client throw through the real library, and
// libdnnl itself throws through the C boundary; both must reach the caller.
#define HOOK(name, since, parameters, arguments)
#define FORWARD(name, since, parameters, arguments)                                                \
    abi::status dnnl_graph_##name parameters {                                                     \
        const auto function = real().name;                                                         \
        return function != nullptr ? function arguments : abi::unimplemented;                      \
    }

namespace maskwise::onednn {
#include "onednn/library/functions.inc"
} // namespace maskwise::onednn
