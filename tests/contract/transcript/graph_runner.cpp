#include "graph_runner.hpp"

#include "select_graph.hpp"

#include "support/onednn_types.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cstring>

namespace maskwise::contract {
namespace {

using owned_tensors = std::vector<owned<dnnl_graph_tensor_t>>;

owned_tensors bind(const std::vector<logical_tensor>& tensors, memory& bytes) {
    owned_tensors bound;
    for (const auto& tensor : tensors) {
        auto& buffer = bytes[tensor.id];
        if (buffer.empty()) buffer = filled_buffer(tensor);
        dnnl_graph_tensor_t handle = nullptr;
        dnnl_graph_tensor_create(&handle, &tensor, cpu_engine(),
                                 buffer.empty() ? nullptr : buffer.data());
        bound.emplace_back(handle);
    }
    return bound;
}

std::vector<const_dnnl_graph_tensor_t> handles(const owned_tensors& bound) {
    std::vector<const_dnnl_graph_tensor_t> result;
    for (const auto& tensor : bound) result.push_back(tensor.get());
    return result;
}

using ports_num_function = dnnl_status_t (*)(const_dnnl_graph_partition_t, std::size_t*);
using ports_function = dnnl_status_t (*)(const_dnnl_graph_partition_t, std::size_t,
                                         dnnl_graph_logical_tensor_t*);

std::vector<logical_tensor> ports(dnnl_graph_partition_t partition, ports_num_function get_num,
                                  ports_function get) {
    std::size_t count = 0;
    get_num(partition, &count);
    std::vector<logical_tensor> result(count);
    if (count > 0) get(partition, count, result.data());
    return result;
}

// Index of dst's element `index` in an operand that broadcasts to it.
std::size_t position_in(std::size_t index, const logical_tensor& dst, const logical_tensor& from) {
    std::size_t position = 0, step = 1;
    for (int i = 0; i < dst.ndims; ++i) {
        const auto extent = static_cast<std::size_t>(dst.dims[dst.ndims - 1 - i]);
        const std::size_t coordinate = index % extent;
        index /= extent;
        if (i >= from.ndims) continue;
        const auto own = static_cast<std::size_t>(from.dims[from.ndims - 1 - i]);
        if (own != 1) position += coordinate * step;
        step *= own;
    }
    return position;
}

bool run_partition(dnnl_graph_partition_t partition, const std::vector<node>& nodes,
                   memory& bytes) {
    const auto inputs = inputs_of(partition), outputs = outputs_of(partition);
    if (is_supported(partition)) {
        const auto compiled = compile(partition, inputs, outputs);
        return compiled && execute(compiled.get(), inputs, outputs, bytes) == dnnl_success;
    }
    const std::size_t id = ops_of(partition).at(0);
    const auto what = std::find_if(nodes.begin(), nodes.end(),
                                   [id](const node& candidate) { return candidate.id == id; });
    if (what->kind == dnnl_graph_op_select) select_by_reference(*what, bytes);
    return what->kind == dnnl_graph_op_select || what->kind == dnnl_graph_op_end;
}

} // namespace

owned<dnnl_graph_op_t> make_op(const node& what) {
    dnnl_graph_op_t op = nullptr;
    dnnl_graph_op_create(&op, what.id, what.kind, "");
    for (const auto& input : what.inputs) dnnl_graph_op_add_input(op, &input);
    for (const auto& output : what.outputs) dnnl_graph_op_add_output(op, &output);
    return owned<dnnl_graph_op_t>(op);
}

owned_graph build(const std::vector<node>& nodes) {
    dnnl_graph_graph_t graph = nullptr;
    dnnl_graph_graph_create(&graph, dnnl_cpu);
    for (const auto& each : nodes) dnnl_graph_add_op(graph, make_op(each).get());
    dnnl_graph_graph_finalize(graph);
    return owned_graph(graph);
}

std::vector<owned_partition> partitions_of(dnnl_graph_graph_t graph,
                                           dnnl_graph_partition_policy_t policy) {
    dnnl_graph_graph_filter(graph, policy);
    std::size_t count = 0;
    dnnl_graph_graph_get_partition_num(graph, &count);
    std::vector<dnnl_graph_partition_t> raw(count);
    if (count > 0) dnnl_graph_graph_get_partitions(graph, count, raw.data());
    std::vector<owned_partition> result;
    for (auto* partition : raw) result.emplace_back(partition);
    return result;
}

std::vector<std::size_t> ops_of(dnnl_graph_partition_t partition) {
    std::size_t count = 0;
    dnnl_graph_partition_get_op_num(partition, &count);
    std::vector<std::size_t> ids(count);
    dnnl_graph_partition_get_ops(partition, count, ids.data());
    return ids;
}

std::vector<logical_tensor> inputs_of(dnnl_graph_partition_t partition) {
    return ports(partition, dnnl_graph_partition_get_input_ports_num,
                 dnnl_graph_partition_get_input_ports);
}

std::vector<logical_tensor> outputs_of(dnnl_graph_partition_t partition) {
    return ports(partition, dnnl_graph_partition_get_output_ports_num,
                 dnnl_graph_partition_get_output_ports);
}

bool is_supported(dnnl_graph_partition_t partition) {
    std::uint8_t supported = 0;
    dnnl_graph_partition_is_supported(partition, &supported);
    return supported != 0;
}

owned_compiled compile(dnnl_graph_partition_t partition, const std::vector<logical_tensor>& inputs,
                       const std::vector<logical_tensor>& outputs, dnnl_engine_t engine) {
    dnnl_graph_compiled_partition_t compiled = nullptr;
    dnnl_graph_compiled_partition_create(&compiled, partition);
    owned_compiled result(compiled);
    auto in = pointers(inputs), out = pointers(outputs);
    const auto status = dnnl_graph_partition_compile(partition, compiled, in.size(), in.data(),
                                                     out.size(), out.data(), engine);
    return status == dnnl_success ? std::move(result) : nullptr;
}

dnnl_status_t execute(dnnl_graph_compiled_partition_t compiled,
                      const std::vector<logical_tensor>& inputs,
                      const std::vector<logical_tensor>& outputs, memory& bytes,
                      dnnl_stream_t stream) {
    const auto bound_in = bind(inputs, bytes), bound_out = bind(outputs, bytes);
    auto in = handles(bound_in), out = handles(bound_out);
    const auto status = dnnl_graph_compiled_partition_execute(compiled, stream, in.size(),
                                                              in.data(), out.size(), out.data());
    dnnl_stream_wait(stream);
    return status;
}

memory run_graph(const std::vector<node>& nodes, dnnl_graph_partition_policy_t policy) {
    const auto graph = build(nodes);
    memory bytes;
    for (const auto& partition : partitions_of(graph.get(), policy))
        if (!run_partition(partition.get(), nodes, bytes)) return {};
    return bytes;
}

void select_by_reference(const node& select, memory& bytes) {
    for (const auto& input : select.inputs)
        if (bytes[input.id].empty()) bytes[input.id] = filled_buffer(input);
    const auto& dst = select.outputs[0];
    auto& result = bytes[dst.id];
    result.resize(filled_buffer(dst).size());
    const auto width = static_cast<std::size_t>(test::width_bytes(dst));
    for (std::size_t i = 0; i * width < result.size(); ++i) {
        const bool first = bytes[select.inputs[0].id][position_in(i, dst, select.inputs[0])] != 0;
        const auto& from = select.inputs[first ? 1 : 2];
        std::memcpy(&result[i * width], &bytes[from.id][position_in(i, dst, from) * width], width);
    }
}

} // namespace maskwise::contract
