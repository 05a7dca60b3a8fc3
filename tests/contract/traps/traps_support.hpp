#pragma once

// Calls functions that some versions of oneDNN lack. Looks the functions up by name, as clients for
// several versions do.

#include "support/client/graph_client.hpp"

#include <vector>

namespace maskwise::contract {

using namespace test;

bool is_equal(const logical_tensor& a, const logical_tensor& b);

void ask_mangled_partition_kind(dnnl_graph_partition_t partition);

// Down to create_ocl_allocator(), each returned status is dnnl_unimplemented if the process lacks
// the oneDNN function. `deps` points to a std::vector<sycl::event> or is null.
dnnl_status_t execute_sycl(dnnl_graph_compiled_partition_t compiled, const node& spec,
                           const void* deps);
dnnl_status_t scratchpad_of(dnnl_graph_compiled_partition_t compiled, logical_tensor* answer);
std::size_t constant_cache_capacity();
dnnl_status_t set_constant_cache_capacity(std::size_t megabytes);
dnnl_status_t set_fpmath_mode(dnnl_graph_graph_t graph);
dnnl_status_t set_dump_mode(unsigned modes);
dnnl_status_t create_ocl_allocator();

// Returns dst's bytes after dnnl_graph_compiled_partition_execute_v2; empty on failure.
std::vector<std::uint8_t> execute_v2(dnnl_graph_compiled_partition_t compiled, const node& spec);

// Returns the result of dnnl_graph_tensor_get_logical_tensor for a tensor created from `desc`.
logical_tensor logical_tensor_of_a_tensor(const logical_tensor& desc);

// Whether the client catches the exception that its allocator throws. Not for SYCL.
bool a_throwing_allocator_reaches_the_client();

// A 0-D f32 host scalar.
logical_tensor scalar_of_host(std::size_t id);
// Both return dst of the Select `spec`, with a host scalar of this value as input `slot`.
// run_with_host_scalar calls oneDNN's API; empty on failure. select_with_scalar is the reference.
std::vector<std::uint8_t> run_with_host_scalar(const node& spec, std::size_t slot, float value);
std::vector<std::uint8_t> select_with_scalar(const node& spec, std::size_t slot, float value);

// Compiles the first partition of a graph, then executes it with a host scalar in place of the
// input with id `scalar`. Returns the status of execute.
dnnl_status_t status_with_host_scalar(const std::vector<node>& nodes, std::size_t scalar);

} // namespace maskwise::contract
