#include "select_graph.hpp"

#include "support/onednn_types.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

namespace maskwise::contract {

std::vector<const logical_tensor*> pointers(const std::vector<logical_tensor>& tensors) {
    std::vector<const logical_tensor*> result;
    for (const auto& tensor : tensors) result.push_back(&tensor);
    return result;
}

namespace {

std::size_t width_of(const logical_tensor& tensor) {
    return static_cast<std::size_t>(test::width_bytes(tensor));
}

std::size_t span_elements(const logical_tensor& tensor) {
    std::int64_t last = 0;
    for (int i = 0; i < tensor.ndims; ++i) {
        if (tensor.dims[i] == 0) return 0;
        last += (tensor.dims[i] - 1) * tensor.layout.strides[i];
    }
    return static_cast<std::size_t>(last) + 1;
}

// A well mixed number for every position: neighbours share no bit by rule.
std::uint32_t mixed(std::uint32_t value) {
    value = (value ^ (value >> 16)) * 0x85ebca6bU;
    value = (value ^ (value >> 13)) * 0xc2b2ae35U;
    return value ^ (value >> 16);
}

// Finite numbers in every type: small integers in f32, exact in 16 bits as well.
void fill(std::vector<std::uint8_t>& bytes, const logical_tensor& tensor) {
    const std::size_t width = width_of(tensor);
    for (std::size_t i = 0; i * width < bytes.size(); ++i) {
        const std::uint32_t seed = mixed(static_cast<std::uint32_t>(i * 16 + tensor.id));
        if (width == 4) {
            const auto value = static_cast<float>(seed >> 20);
            std::memcpy(&bytes[i * 4], &value, 4);
        } else if (width == 2) {
            const auto value = static_cast<std::uint16_t>(0x3c00 + (seed >> 24));
            std::memcpy(&bytes[i * 2], &value, 2);
        } else {
            bytes[i] = (seed >> 28) % 2;
        }
    }
}

struct bound_tensor {
    std::vector<std::uint8_t> bytes;
    dnnl_graph_tensor_t handle = nullptr;

    explicit bound_tensor(const logical_tensor& tensor) {
        bytes = filled_buffer(tensor);
        dnnl_graph_tensor_create(&handle, &tensor, cpu_engine(),
                                 bytes.empty() ? nullptr : bytes.data());
    }
    ~bound_tensor() { dnnl_graph_tensor_destroy(handle); }
    bound_tensor(const bound_tensor&) = delete;
    bound_tensor& operator=(const bound_tensor&) = delete;
};

using bound_tensors = std::vector<std::unique_ptr<bound_tensor>>;

bound_tensors bind(const std::vector<logical_tensor>& tensors) {
    bound_tensors bound;
    for (const auto& tensor : tensors) bound.push_back(std::make_unique<bound_tensor>(tensor));
    return bound;
}

std::vector<dnnl_graph_tensor_t> handles(const bound_tensors& bound) {
    std::vector<dnnl_graph_tensor_t> result;
    for (const auto& tensor : bound) result.push_back(tensor->handle);
    return result;
}

std::vector<logical_tensor> queried(dnnl_graph_compiled_partition_t compiled,
                                    const std::vector<logical_tensor>& tensors) {
    std::vector<logical_tensor> result;
    for (const auto& tensor : tensors) {
        logical_tensor answer = tensor;
        dnnl_graph_compiled_partition_query_logical_tensor(compiled, tensor.id, &answer);
        result.push_back(answer);
    }
    return result;
}

void note_queries(const transcript& out, dnnl_graph_compiled_partition_t compiled,
                  const std::vector<logical_tensor>& outputs) {
    for (const auto& output : queried(compiled, outputs))
        out.note("query " + std::to_string(output.id), text_of(output));
    std::size_t count = 0;
    const dnnl_graph_inplace_pair_t* pairs = nullptr;
    out.status("get_inplace_ports",
               dnnl_graph_compiled_partition_get_inplace_ports(compiled, &count, &pairs));
    std::string text = std::to_string(count);
    for (std::size_t i = 0; i < count; ++i)
        text += ' ' + std::to_string(pairs[i].input_id) + "->" + std::to_string(pairs[i].output_id);
    out.note("in-place pairs", text);
}

void execute(const transcript& out, dnnl_graph_compiled_partition_t compiled,
             const std::vector<logical_tensor>& inputs,
             const std::vector<logical_tensor>& outputs) {
    const auto bound_inputs = bind(inputs);
    const auto bound_outputs = bind(queried(compiled, outputs));
    const auto in = handles(bound_inputs);
    const auto result = handles(bound_outputs);
    out.status("execute", dnnl_graph_compiled_partition_execute(
                              compiled, cpu_stream(), in.size(),
                              const_cast<const_dnnl_graph_tensor_t*>(in.data()), result.size(),
                              const_cast<const_dnnl_graph_tensor_t*>(result.data())));
    dnnl_stream_wait(cpu_stream());
    for (const auto& output : bound_outputs)
        out.note("hash of dst", std::to_string(hash_of(output->bytes)));
}

} // namespace

std::vector<std::uint8_t> filled_buffer(const logical_tensor& tensor) {
    std::vector<std::uint8_t> bytes(span_elements(tensor) * width_of(tensor));
    fill(bytes, tensor);
    return bytes;
}

std::uint64_t hash_of(const std::vector<std::uint8_t>& bytes) {
    std::uint64_t hash = 1469598103934665603U;
    for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211U;
    return hash;
}

select_graph::select_graph(const transcript& out, const select_case& what,
                           dnnl_graph_partition_policy_t policy)
    : out_(out), policy_(policy) {
    out.status("op_create", dnnl_graph_op_create(&op_, 7, dnnl_graph_op_select, "sel"));
    for (const auto* input : {&what.cond, &what.src_0, &what.src_1})
        dnnl_graph_op_add_input(op_, input);
    dnnl_graph_op_add_output(op_, &what.dst);
    if (!what.auto_broadcast.empty())
        out.status("op_set_attr_str",
                   dnnl_graph_op_set_attr_str(op_, dnnl_graph_op_attr_auto_broadcast,
                                              what.auto_broadcast.c_str(), 1));
    dnnl_graph_graph_create(&graph_, dnnl_cpu);
    out.status("add_op", dnnl_graph_add_op(graph_, op_));
}

select_graph::~select_graph() {
    for (auto* partition : partitions_) dnnl_graph_partition_destroy(partition);
    dnnl_graph_graph_destroy(graph_);
    dnnl_graph_op_destroy(op_);
}

dnnl_graph_partition_t select_graph::partition() {
    out_.status("finalize", dnnl_graph_graph_finalize(graph_));
    out_.status("filter", dnnl_graph_graph_filter(graph_, policy_));
    std::size_t count = 0;
    out_.status("get_partition_num", dnnl_graph_graph_get_partition_num(graph_, &count));
    out_.note("partitions", static_cast<std::int64_t>(count));
    if (count == 0) return nullptr;
    partitions_.resize(count);
    out_.status("get_partitions",
                dnnl_graph_graph_get_partitions(graph_, count, partitions_.data()));
    std::uint8_t supported = 0;
    dnnl_graph_partition_is_supported(partitions_[0], &supported);
    out_.note("supported", supported);
    return partitions_[0];
}

void compile_and_execute(const transcript& out, dnnl_graph_partition_t partition,
                         const std::vector<logical_tensor>& inputs,
                         const std::vector<logical_tensor>& outputs) {
    dnnl_graph_compiled_partition_t compiled = nullptr;
    dnnl_graph_compiled_partition_create(&compiled, partition);
    auto in = pointers(inputs);
    auto result = pointers(outputs);
    const auto status = dnnl_graph_partition_compile(partition, compiled, in.size(), in.data(),
                                                     result.size(), result.data(), cpu_engine());
    out.status("compile", status);
    if (status == dnnl_success) {
        note_queries(out, compiled, outputs);
        execute(out, compiled, inputs, outputs);
    }
    dnnl_graph_compiled_partition_destroy(compiled);
}

} // namespace maskwise::contract
