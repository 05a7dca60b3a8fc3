#pragma once

// A client as users write it: the public C++ header of oneDNN Graph and nothing else.

#include "oneapi/dnnl/dnnl_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace maskwise::contract {

using tensor_type = dnnl::graph::logical_tensor::data_type;
using extents = std::vector<std::int64_t>;

// One Select with dense operands, compiled.
struct client_select {
    extents cond, src_0, src_1, dst;
    tensor_type type = tensor_type::f32;
};

// Whether the plugin stands in front in this process.
bool plugin_is_loaded();

// Whether Maskwise executes this compiled partition; false without the plugin.
bool maskwise_owns(const dnnl::graph::compiled_partition& compiled);

dnnl::engine& engine();
dnnl::stream& stream();

// The only partition of a graph of one Select.
dnnl::graph::partition single_partition(const client_select& what);
dnnl::graph::compiled_partition compile(const client_select& what);

// Compiles the partition on a handle that is compiled already.
void compile_again(const dnnl::graph::partition& partition,
                   const dnnl::graph::compiled_partition& handle, const client_select& what);

// Executes on these bytes; dst has the bytes of the whole output.
void execute(const dnnl::graph::compiled_partition& compiled, const client_select& what,
             const void* cond, const void* src_0, const void* src_1, void* dst);

std::size_t element_count(const extents& shape);
std::size_t width_of(tensor_type type);

// Element by element with index arithmetic: an oracle that shares nothing with Maskwise.
std::vector<std::uint8_t> expected(const client_select& what, const std::uint8_t* cond,
                                   const std::uint8_t* src_0, const std::uint8_t* src_1);

} // namespace maskwise::contract
