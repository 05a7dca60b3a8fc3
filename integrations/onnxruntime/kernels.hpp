#pragma once

#include "runtime.hpp"

#include <memory>

namespace maskwise::ort {

inline constexpr const char* provider_name = "MaskwiseExecutionProvider";

struct registry_deleter {
    const runtime* with;
    void operator()(abi::kernel_registry* registry) const noexcept {
        with->ReleaseKernelRegistry(registry);
    }
};
using registry_pointer = std::unique_ptr<abi::kernel_registry, registry_deleter>;

// The kernels of the provider; `with` outlives them.
registry_pointer make_kernel_registry(const runtime& with);

} // namespace maskwise::ort
