#pragma once

#include "runtime.hpp"

#include <limits>
#include <span>

// The kernels of single nodes.
namespace maskwise::ort {

inline constexpr const char* provider_name = "MaskwiseExecutionProvider";
inline constexpr int newest_version = std::numeric_limits<int>::max();

// Of all operators here; `with` outlives it.
owned<OrtKernelRegistry> make_kernel_registry(const runtime& with);

struct kernel_form {
    const char* type;
    const char* domain;
    int first, last; // versions
};

// `name` is the definition's for the types of one or more operands.
void constrain_type(const runtime& with, OrtKernelDefBuilder* builder, const char* name,
                    std::span<const data_type> types);

// `create` is given the address of `with`.
void add_kernel(const runtime& with, OrtKernelRegistry* to, const kernel_form& form,
                void (*configure)(const runtime&, OrtKernelDefBuilder*),
                OrtKernelCreateFunc create);

// Kernels for any shapes and any number of threads at once; `with` outlives them.
void add_where_kernels(const runtime& with, OrtKernelRegistry* to);
void add_attention_kernels(const runtime& with, OrtKernelRegistry* to);

} // namespace maskwise::ort
