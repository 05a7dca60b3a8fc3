#pragma once

// A client that builds a graph of dense tensors with the public C API and executes every partition
// of it, as a framework does.

#include "transcript.hpp"

#include <map>
#include <memory>
#include <vector>

namespace maskwise::contract {

struct node {
    std::size_t id;
    dnnl_graph_op_kind_t kind;
    std::vector<logical_tensor> inputs, outputs;
};

struct handle_deleter {
    void operator()(dnnl_graph_graph_t handle) const { dnnl_graph_graph_destroy(handle); }
    void operator()(dnnl_graph_op_t handle) const { dnnl_graph_op_destroy(handle); }
    void operator()(dnnl_graph_partition_t handle) const { dnnl_graph_partition_destroy(handle); }
    void operator()(dnnl_graph_compiled_partition_t handle) const {
        dnnl_graph_compiled_partition_destroy(handle);
    }
    void operator()(dnnl_graph_tensor_t handle) const { dnnl_graph_tensor_destroy(handle); }
};
template <typename Handle>
using owned = std::unique_ptr<std::remove_pointer_t<Handle>, handle_deleter>;
using owned_graph = owned<dnnl_graph_graph_t>;
using owned_partition = owned<dnnl_graph_partition_t>;
using owned_compiled = owned<dnnl_graph_compiled_partition_t>;

owned<dnnl_graph_op_t> make_op(const node& what);

// All nodes added, each operator destroyed right after; finalized.
owned_graph build(const std::vector<node>& nodes);

// Filters and takes the partitions.
std::vector<owned_partition> partitions_of(dnnl_graph_graph_t graph,
                                           dnnl_graph_partition_policy_t policy);

std::vector<std::size_t> ops_of(dnnl_graph_partition_t partition);
std::vector<logical_tensor> inputs_of(dnnl_graph_partition_t partition);
std::vector<logical_tensor> outputs_of(dnnl_graph_partition_t partition);
bool is_supported(dnnl_graph_partition_t partition);

// Null where compile does not answer success.
owned_compiled compile(dnnl_graph_partition_t partition, const std::vector<logical_tensor>& inputs,
                       const std::vector<logical_tensor>& outputs,
                       dnnl_engine_t engine = cpu_engine());

using memory = std::map<std::size_t, std::vector<std::uint8_t>>; // by tensor id

// Executes with the buffers of `bytes` under the ids of the lists, the tensors described as there;
// waits.
dnnl_status_t execute(dnnl_graph_compiled_partition_t compiled,
                      const std::vector<logical_tensor>& inputs,
                      const std::vector<logical_tensor>& outputs, memory& bytes,
                      dnnl_stream_t stream = cpu_stream());

// The whole graph on filled inputs; every tensor's bytes. What this oneDNN does not support and is
// a Select alone, the client does itself, element by element. An empty map tells that something
// failed.
memory run_graph(const std::vector<node>& nodes, dnnl_graph_partition_policy_t policy);

// A Select of dense tensors, element by element with index arithmetic.
void select_by_reference(const node& select, memory& bytes);

} // namespace maskwise::contract
