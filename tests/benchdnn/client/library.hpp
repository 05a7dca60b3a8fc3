#pragma once

// The process's oneDNN, and whether the plugin is loaded before oneDNN.

#include "model/graph.hpp"
#include "support/client/graph_client.hpp"

#include <string>

namespace maskwise::bench {

// Functions that the oldest supported oneDNN lacks; null if this oneDNN lacks them.
struct newer_functions {
    dnnl_status_t (*set_fpmath_mode)(dnnl_graph_graph_t, dnnl_fpmath_mode_t, int);
    dnnl_status_t (*execute)(const_dnnl_graph_compiled_partition_t, dnnl_stream_t, std::size_t,
                             const_dnnl_graph_tensor_t*, std::size_t, const_dnnl_graph_tensor_t*,
                             const_dnnl_graph_tensor_t);
    dnnl_status_t (*get_scratchpad)(const_dnnl_graph_compiled_partition_t,
                                    dnnl_graph_logical_tensor_t*);
};
const newer_functions& newer();

// "oneDNN 3.13.2 (CPU runtime SYCL, AVX2), Maskwise in front". Ends in "Maskwise absent" if no
// plugin is loaded.
std::string library_description();

// Names an operator, attribute, property or combination of types of `g` that this oneDNN lacks.
// Empty if this oneDNN supports all of `g`. Must run before dnnl_graph_add_op, which may crash on
// unknown operators.
std::string library_lacks(const graph& g);

// Whether the CPU lacks the instructions that oneDNN needs for the type, or ONEDNN_MAX_CPU_ISA
// forbids them. If so, an unsupported partition is no fault.
bool machine_lacks(data_type type);

} // namespace maskwise::bench
