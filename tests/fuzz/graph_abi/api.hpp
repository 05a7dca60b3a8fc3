#pragma once

#include "support/client/graph_client.hpp"

#include <string>

namespace maskwise::fuzz {

// Functions that build and run a graph. with_plugin() returns the program's functions: the
// plugin's, if the plugin is loaded. real() returns oneDNN's.
// clang-format off
#define MASKWISE_FUZZ_CALLS(X) \
    X(op_create) X(op_destroy) X(op_add_input) X(op_add_output) X(op_set_attr_f32) \
    X(op_set_attr_s64) X(op_set_attr_bool) X(op_set_attr_str) X(op_get_id) X(op_get_kind) \
    X(graph_create) X(graph_destroy) X(add_op) X(graph_finalize) X(graph_is_finalized) \
    X(graph_filter) X(graph_get_partition_num) X(graph_get_partitions) X(partition_destroy) \
    X(partition_create_with_op) X(partition_get_op_num) X(partition_get_ops) \
    X(partition_compile) X(partition_get_input_ports_num) X(partition_get_input_ports) \
    X(partition_get_output_ports_num) X(partition_get_output_ports) X(partition_is_supported) \
    X(compiled_partition_create) X(compiled_partition_destroy) X(compiled_partition_execute) \
    X(compiled_partition_query_logical_tensor) X(compiled_partition_get_inplace_ports) \
    X(tensor_create) X(tensor_destroy) X(tensor_get_data_handle) X(tensor_set_data_handle)
// clang-format on

struct api {
#define X(name) decltype(&dnnl_graph_##name) name;
    MASKWISE_FUZZ_CALLS(X)
#undef X
    // Introduced by oneDNN 3.9; null if the library lacks the function.
    dnnl_status_t (*tensor_create_scalar)(dnnl_graph_tensor_t*, const dnnl_graph_logical_tensor_t*,
                                          void*);
};

// Prints the fault and aborts, as a fuzz target must.
[[noreturn]] void fail(const std::string& message);

const api& with_plugin();
const api& real();

using test::plugin_is_loaded;

} // namespace maskwise::fuzz
