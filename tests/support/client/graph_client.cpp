#include "support/client/graph_client.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace maskwise::test {
namespace {

int throwing = 0; // number of live failures_are_thrown

#define CALL(function, ...) call(#function, [&] { return function(__VA_ARGS__); })

struct attribute_setter {
    dnnl_graph_op_t op;
    dnnl_graph_op_attr_t name;

    dnnl_status_t operator()(const std::vector<std::int64_t>& value) const {
        return dnnl_graph_op_set_attr_s64(op, name, value.data(), value.size());
    }
    dnnl_status_t operator()(const std::vector<float>& value) const {
        return dnnl_graph_op_set_attr_f32(op, name, value.data(), value.size());
    }
    dnnl_status_t operator()(float value) const {
        return dnnl_graph_op_set_attr_f32(op, name, &value, 1);
    }
    dnnl_status_t operator()(bool value) const {
        const std::uint8_t byte = value ? 1 : 0;
        return dnnl_graph_op_set_attr_bool(op, name, &byte, 1);
    }
    dnnl_status_t operator()(const std::string& value) const {
        return dnnl_graph_op_set_attr_str(op, name, value.c_str(), 1);
    }
};

using owns_function = int (*)(const_dnnl_graph_compiled_partition_t);

owns_function find_owns() {
    return reinterpret_cast<owns_function>(dlsym(RTLD_DEFAULT, "maskwise_onednn_owns"));
}

bool run_partition(dnnl_graph_partition_t partition, const std::vector<node>& nodes,
                   memory& bytes) {
    const auto inputs = inputs_of(partition), outputs = outputs_of(partition);
    if (is_supported(partition)) {
        const auto compiled = compile(partition, inputs, outputs);
        return compiled && execute(compiled.get(), inputs, outputs, bytes) == dnnl_success;
    }
    const std::size_t id = ops_of(partition).at(0);
    const auto single = std::find_if(nodes.begin(), nodes.end(),
                                     [id](const node& candidate) { return candidate.id == id; });
    if (single->kind == dnnl_graph_op_select) select_by_reference(*single, bytes);
    return single->kind == dnnl_graph_op_select || single->kind == dnnl_graph_op_end;
}

} // namespace

failed_call::failed_call(const char* called, dnnl_status_t answer)
    : std::runtime_error(called + (" returns " + std::to_string(answer))), function(called),
      status(answer), has_thrown(false) {}

failed_call::failed_call(const char* called, const std::exception& thrown)
    : std::runtime_error(std::string(called) + " threw a C++ exception: " + thrown.what()),
      function(called), status(dnnl_runtime_error), has_thrown(true) {}

void note_failure(const char* function, dnnl_status_t status) {
    if (throwing > 0) throw failed_call(function, status);
}

void note_exception(const char* function, const std::exception& thrown) {
    if (throwing > 0) throw failed_call(function, thrown);
    throw;
}

failures_are_thrown::failures_are_thrown() {
    ++throwing;
}

failures_are_thrown::~failures_are_thrown() {
    --throwing;
}

dnnl_engine_t cpu_engine() {
    static const dnnl_engine_t engine = [] {
        dnnl_engine_t handle = nullptr;
        if (CALL(dnnl_engine_create, &handle, dnnl_cpu, 0) != dnnl_success) std::abort();
        return handle;
    }();
    return engine;
}

dnnl_stream_t cpu_stream() {
    static const dnnl_stream_t stream = [] {
        dnnl_stream_t handle = nullptr;
        const auto status =
            CALL(dnnl_stream_create, &handle, cpu_engine(), dnnl_stream_default_flags);
        if (status != dnnl_success) std::abort();
        return handle;
    }();
    return stream;
}

bool plugin_is_loaded() {
    return find_owns() != nullptr;
}

bool plugin_expected() {
    const char* const text = std::getenv("MASKWISE_EXPECT");
    return text != nullptr && std::strcmp(text, "plugin") == 0;
}

bool maskwise_owns(const_dnnl_graph_compiled_partition_t compiled) {
    const auto owns = find_owns();
    return owns != nullptr && owns(compiled) == 1;
}

node select_of(const dims& cond, const dims& src_0, const dims& src_1, const dims& dst) {
    return {7,
            dnnl_graph_op_select,
            {dense(0, dnnl_boolean, cond), dense(1, dnnl_f32, src_0), dense(2, dnnl_f32, src_1)},
            {dense(3, dnnl_f32, dst)}};
}

owned<dnnl_graph_op_t> make_op(const node& described) {
    auto op = make<dnnl_graph_op_t>("dnnl_graph_op_create", [&](auto* handle) {
        return dnnl_graph_op_create(handle, described.id, described.kind, described.name.c_str());
    });
    for (const auto& input : described.inputs) CALL(dnnl_graph_op_add_input, op.get(), &input);
    for (const auto& output : described.outputs) CALL(dnnl_graph_op_add_output, op.get(), &output);
    for (const auto& [name, value] : described.attributes)
        call("dnnl_graph_op_set_attr", [&, key = name, &held = value] {
            return std::visit(attribute_setter{op.get(), key}, held);
        });
    return op;
}

owned_graph make_graph() {
    return make<dnnl_graph_graph_t>("dnnl_graph_graph_create", [](auto* handle) {
        return dnnl_graph_graph_create(handle, dnnl_cpu);
    });
}

owned_graph build(const std::vector<node>& nodes) {
    auto graph = make_graph();
    for (const auto& each : nodes) {
        const auto op = make_op(each);
        CALL(dnnl_graph_add_op, graph.get(), op.get());
    }
    CALL(dnnl_graph_graph_finalize, graph.get());
    return graph;
}

std::vector<owned_partition> partitions_of(dnnl_graph_graph_t graph,
                                           dnnl_graph_partition_policy_t policy) {
    std::size_t count = 0;
    CALL(dnnl_graph_graph_filter, graph, policy);
    CALL(dnnl_graph_graph_get_partition_num, graph, &count);
    std::vector<owned_partition> partitions(count);
    if (count == 0) return partitions;
    call("dnnl_graph_graph_get_partitions", [&] {
        std::vector<dnnl_graph_partition_t> raw(count);
        const auto status = dnnl_graph_graph_get_partitions(graph, count, raw.data());
        for (std::size_t i = 0; i < count; ++i) partitions[i].reset(raw[i]);
        return status;
    });
    return partitions;
}

std::vector<std::size_t> ops_of(dnnl_graph_partition_t partition) {
    std::size_t count = 0;
    CALL(dnnl_graph_partition_get_op_num, partition, &count);
    std::vector<std::size_t> ids(count);
    CALL(dnnl_graph_partition_get_ops, partition, count, ids.data());
    return ids;
}

std::vector<logical_tensor> inputs_of(dnnl_graph_partition_t partition) {
    std::size_t count = 0;
    CALL(dnnl_graph_partition_get_input_ports_num, partition, &count);
    std::vector<logical_tensor> ports(count);
    if (count > 0) CALL(dnnl_graph_partition_get_input_ports, partition, count, ports.data());
    return ports;
}

std::vector<logical_tensor> outputs_of(dnnl_graph_partition_t partition) {
    std::size_t count = 0;
    CALL(dnnl_graph_partition_get_output_ports_num, partition, &count);
    std::vector<logical_tensor> ports(count);
    if (count > 0) CALL(dnnl_graph_partition_get_output_ports, partition, count, ports.data());
    return ports;
}

bool is_supported(dnnl_graph_partition_t partition) {
    std::uint8_t supported = 0;
    CALL(dnnl_graph_partition_is_supported, partition, &supported);
    return supported != 0;
}

owned_compiled make_compiled(dnnl_graph_partition_t partition) {
    return make<dnnl_graph_compiled_partition_t>(
        "dnnl_graph_compiled_partition_create",
        [=](auto* handle) { return dnnl_graph_compiled_partition_create(handle, partition); });
}

dnnl_status_t compile_into(dnnl_graph_compiled_partition_t compiled,
                           dnnl_graph_partition_t partition,
                           const std::vector<logical_tensor>& inputs,
                           const std::vector<logical_tensor>& outputs, dnnl_engine_t engine) {
    auto in = pointers(inputs), out = pointers(outputs);
    return CALL(dnnl_graph_partition_compile, partition, compiled, in.size(), in.data(), out.size(),
                out.data(), engine);
}

owned_compiled compile(dnnl_graph_partition_t partition, const std::vector<logical_tensor>& inputs,
                       const std::vector<logical_tensor>& outputs, dnnl_engine_t engine) {
    auto compiled = make_compiled(partition);
    if (compile_into(compiled.get(), partition, inputs, outputs, engine) != dnnl_success)
        return nullptr;
    return compiled;
}

std::vector<logical_tensor> queried(dnnl_graph_compiled_partition_t compiled,
                                    const std::vector<logical_tensor>& tensors) {
    auto result = tensors;
    for (auto& answer : result)
        dnnl_graph_compiled_partition_query_logical_tensor(compiled, answer.id, &answer);
    return result;
}

owned_tensor tensor_at(const logical_tensor& described, void* data) {
    using create_scalar =
        dnnl_status_t (*)(dnnl_graph_tensor_t*, const logical_tensor*, void* value);
    if (described.property != host_scalar)
        return make<dnnl_graph_tensor_t>("dnnl_graph_tensor_create", [&](auto* handle) {
            return dnnl_graph_tensor_create(handle, &described, cpu_engine(), data);
        });
    const auto create =
        reinterpret_cast<create_scalar>(dlsym(RTLD_DEFAULT, "dnnl_graph_tensor_create_scalar"));
    // The value is overwritten and freed, because the tensor must have copied the value.
    std::vector<std::uint8_t> value(static_cast<std::size_t>(width_bytes(described)));
    std::memcpy(value.data(), data, value.size());
    auto tensor = make<dnnl_graph_tensor_t>("dnnl_graph_tensor_create_scalar", [&](auto* handle) {
        return create(handle, &described, value.data());
    });
    std::fill(value.begin(), value.end(), std::uint8_t{0xEE});
    return tensor;
}

bound_tensors::bound_tensors(const std::vector<logical_tensor>& tensors, memory& bytes) {
    for (const auto& tensor : tensors) {
        auto& buffer = bytes[tensor.id];
        if (buffer.empty()) buffer = filled_buffer(tensor);
        owners_.push_back(tensor_at(tensor, buffer.empty() ? nullptr : buffer.data()));
        handles_.push_back(owners_.back().get());
    }
}

dnnl_status_t execute(dnnl_graph_compiled_partition_t compiled,
                      const std::vector<logical_tensor>& inputs,
                      const std::vector<logical_tensor>& outputs, memory& bytes,
                      dnnl_stream_t stream) {
    bound_tensors in(inputs, bytes), out(outputs, bytes);
    return call("dnnl_graph_compiled_partition_execute", [&] {
        const auto status = dnnl_graph_compiled_partition_execute(
            compiled, stream, in.size(), in.data(), out.size(), out.data());
        dnnl_stream_wait(stream);
        return status;
    });
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
    bytes[dst.id].resize(size_of(dst));
    const auto view = [&](const logical_tensor& tensor) {
        return view_of(tensor, bytes[tensor.id].data());
    };
    select_reference(view(select.inputs[0]), view(select.inputs[1]), view(select.inputs[2]),
                     view(dst), width_bytes(dst));
}

} // namespace maskwise::test
