#pragma once

#include "onednn/library/abi.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::onednn {

// The arguments of dnnl_graph_partition_compile.
struct compile_call {
    abi::partition partition;
    abi::compiled_partition compiled_partition;
    std::size_t in_num;
    const abi::logical_tensor** inputs;
    std::size_t out_num;
    const abi::logical_tensor** outputs;
    abi::engine engine;
};

// Whether an argument that must not be null is; elements of the lists are not looked at.
bool has_nulls(const compile_call& call);
// Throws argument_error where an element is null.
std::vector<abi::logical_tensor> copy_tensors(std::size_t count,
                                              const abi::logical_tensor** tensors);
// The list in the form that the real library takes; valid as long as `tensors` stays as it is.
std::vector<const abi::logical_tensor*>
pointers_to(const std::vector<abi::logical_tensor>& tensors);

} // namespace maskwise::onednn
