#pragma once

// The oneDNN of this process, and the library that is loaded before it.

#include "model/graph.hpp"
#include "support/client/graph_client.hpp"

#include <string>

namespace maskwise::bench {

// Null in libraries older than the function.
struct newer_functions {
    dnnl_status_t (*set_fpmath_mode)(dnnl_graph_graph_t, dnnl_fpmath_mode_t, int);
    dnnl_status_t (*execute)(const_dnnl_graph_compiled_partition_t, dnnl_stream_t, std::size_t,
                             const_dnnl_graph_tensor_t*, std::size_t, const_dnnl_graph_tensor_t*,
                             const_dnnl_graph_tensor_t);
    dnnl_status_t (*get_scratchpad)(const_dnnl_graph_compiled_partition_t,
                                    dnnl_graph_logical_tensor_t*);
};
const newer_functions& newer();

// "oneDNN 3.13.2 (CPU runtime SYCL, AVX2), Maskwise in front"
std::string library_description();

// The reason why this library cannot take the graph (it lacks an operator, attribute or property),
// or empty. Checked before add_op, which crashes on unknown operators.
std::string library_lacks(const graph& g);

// Whether the CPU, or ONEDNN_MAX_CPU_ISA, lacks the instructions that oneDNN needs for the type.
// Then "unsupported" is no fault.
bool machine_lacks(data_type type);

} // namespace maskwise::bench
