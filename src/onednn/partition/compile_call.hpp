#pragma once

#include "onednn/record/translate.hpp"

#include <cstddef>

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

// The client's tensors at compile, as Maskwise's types.
struct compile_request {
    tensor_list inputs, outputs;
    abi::engine engine;
};

// Whether a required argument is null. Does not check the lists' elements.
bool has_nulls(const compile_call& call);
// Throws argument_error for a null element or an invalid rank.
compile_request read_request(const compile_call& call);

abi::status call_real_compile(const compile_call& call);
// Compiles with these tensors. Throws as require_success and the real library do.
void compile_by_onednn(abi::partition partition, abi::compiled_partition compiled,
                       const compile_request& request);
// Returns the description of a tensor in the compiled partition. Throws as require_success does.
logical_tensor query_onednn(abi::const_compiled_partition compiled, std::size_t id);

} // namespace maskwise::onednn
