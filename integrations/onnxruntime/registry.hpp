#pragma once

#include "runtime.hpp"

#include <limits>
#include <span>

// Registers the kernels of single nodes.
namespace maskwise::ort {

inline constexpr const char* provider_name = "MaskwiseExecutionProvider";
inline constexpr int newest_version = std::numeric_limits<int>::max();

// The kernels of all operators; `api` must outlive the registry.
owned<OrtKernelRegistry> make_kernel_registry(const runtime& api);

struct kernel_signature {
    const char* type;
    const char* domain;
    int first, last; // opset versions
};

// `name` is a type constraint of the operator's definition.
void constrain_type(const runtime& api, OrtKernelDefBuilder* builder, const char* name,
                    std::span<const data_type> types);

// `create` gets the address of `api` as its state.
void add_kernel(const runtime& api, OrtKernelRegistry* registry, const kernel_signature& signature,
                void (*configure)(const runtime&, OrtKernelDefBuilder*),
                OrtKernelCreateFunc create);

// Both functions add thread-safe kernels for any shapes. `api` must outlive the kernels.
void add_where_kernels(const runtime& api, OrtKernelRegistry* registry);
void add_attention_kernels(const runtime& api, OrtKernelRegistry* registry);

} // namespace maskwise::ort
