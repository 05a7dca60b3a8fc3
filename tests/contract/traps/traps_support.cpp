#include "traps_support.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

namespace maskwise::contract {
namespace {

// Calls a function by name. Returns dnnl_unimplemented if the process lacks the function.
template <typename... Arguments>
dnnl_status_t call(const char* name, Arguments... arguments) {
    void* const address = dlsym(RTLD_DEFAULT, name);
    if (address == nullptr) return dnnl_unimplemented;
    return reinterpret_cast<dnnl_status_t (*)(Arguments...)>(address)(arguments...);
}

// The tensors of one execution, with separate buffers.
struct bound_node {
    memory bytes;
    bound_tensors inputs, outputs;

    explicit bound_node(const node& spec)
        : inputs(spec.inputs, bytes), outputs(spec.outputs, bytes) {}
};

struct thrown_by_the_client : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void* allocate_nothing(std::size_t, std::size_t) {
    throw thrown_by_the_client("no memory today");
}

void free_nothing(void*) {}

} // namespace

bool is_equal(const logical_tensor& a, const logical_tensor& b) {
    std::uint8_t equal = 0;
    return dnnl_graph_logical_tensor_is_equal(&a, &b, &equal) == dnnl_success && equal != 0;
}

void ask_mangled_partition_kind(dnnl_graph_partition_t partition) {
    int kind = 0;
    call("_Z29dnnl_graph_partition_get_kindPK20dnnl_graph_partitionPN4dnnl4impl5graph16partition_"
         "kind_tE",
         const_dnnl_graph_partition_t(partition), &kind);
}

dnnl_status_t execute_sycl(dnnl_graph_compiled_partition_t compiled, const node& spec,
                           const void* deps) {
    bound_node bound(spec);
    return call("dnnl_graph_sycl_interop_compiled_partition_execute",
                const_dnnl_graph_compiled_partition_t(compiled), cpu_stream(), bound.inputs.size(),
                bound.inputs.data(), bound.outputs.size(), bound.outputs.data(), deps,
                static_cast<void*>(nullptr));
}

dnnl_status_t scratchpad_of(dnnl_graph_compiled_partition_t compiled, logical_tensor* answer) {
    return call("dnnl_graph_compiled_partition_get_scratchpad_logical_tensor",
                const_dnnl_graph_compiled_partition_t(compiled), answer);
}

std::size_t constant_cache_capacity() {
    std::size_t megabytes = 0;
    call("dnnl_graph_get_constant_tensor_cache_capacity", dnnl_cpu, &megabytes);
    return megabytes;
}

dnnl_status_t set_constant_cache_capacity(std::size_t megabytes) {
    return call("dnnl_graph_set_constant_tensor_cache_capacity", dnnl_cpu, megabytes);
}

dnnl_status_t set_fpmath_mode(dnnl_graph_graph_t graph) {
    return call("dnnl_graph_graph_set_fpmath_mode", graph, 0, 0);
}

dnnl_status_t set_dump_mode(unsigned modes) {
    return call("dnnl_graph_set_dump_mode", modes);
}

dnnl_status_t create_ocl_allocator() {
    void* allocator = nullptr;
    return call("dnnl_graph_ocl_interop_allocator_create", &allocator, static_cast<void*>(nullptr),
                static_cast<void*>(nullptr));
}

std::vector<std::uint8_t> execute_v2(dnnl_graph_compiled_partition_t compiled, const node& spec) {
    bound_node bound(spec);
    const auto status = call("dnnl_graph_compiled_partition_execute_v2",
                             const_dnnl_graph_compiled_partition_t(compiled), cpu_stream(),
                             bound.inputs.size(), bound.inputs.data(), bound.outputs.size(),
                             bound.outputs.data(), const_dnnl_graph_tensor_t(nullptr));
    dnnl_stream_wait(cpu_stream());
    return status == dnnl_success ? bound.bytes[spec.outputs[0].id] : std::vector<std::uint8_t>{};
}

logical_tensor logical_tensor_of_a_tensor(const logical_tensor& desc) {
    const auto tensor = tensor_at(desc, nullptr);
    logical_tensor answer{};
    call("dnnl_graph_tensor_get_logical_tensor", const_dnnl_graph_tensor_t(tensor.get()), &answer);
    return answer;
}

bool a_throwing_allocator_reaches_the_client() {
    dnnl_graph_allocator_t allocator = nullptr;
    dnnl_engine_t engine = nullptr;
    if (dnnl_graph_allocator_create(&allocator, allocate_nothing, free_nothing) != dnnl_success ||
        dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, allocator) != dnnl_success)
        return false;
    const logical_tensor desc = dense(1, dnnl_f32, {16});
    dnnl_graph_tensor_t tensor = nullptr;
    bool caught = false;
    try {
        dnnl_graph_tensor_create(&tensor, &desc, engine, DNNL_MEMORY_ALLOCATE);
    } catch (const thrown_by_the_client&) {
        caught = true;
    }
    dnnl_engine_destroy(engine);
    dnnl_graph_allocator_destroy(allocator);
    return caught;
}

logical_tensor scalar_of_host(std::size_t id) {
    logical_tensor result = dense(id, dnnl_f32, {});
    result.property = host_scalar;
    return result;
}

namespace {

memory scalar_memory(std::size_t id, float value) {
    memory bytes;
    bytes[id].resize(sizeof(value));
    std::memcpy(bytes[id].data(), &value, sizeof(value));
    return bytes;
}

} // namespace

std::vector<std::uint8_t> run_with_host_scalar(const node& spec, std::size_t slot, float value) {
    const auto partitions = partitions_of(build({spec}).get());
    const auto compiled = compile(partitions.at(0).get(), spec.inputs, spec.outputs);
    auto bytes = scalar_memory(spec.inputs[slot].id, value);
    if (!compiled || execute(compiled.get(), spec.inputs, spec.outputs, bytes) != dnnl_success)
        return {};
    return bytes[spec.outputs[0].id];
}

std::vector<std::uint8_t> select_with_scalar(const node& spec, std::size_t slot, float value) {
    auto bytes = scalar_memory(spec.inputs[slot].id, value);
    select_by_reference(spec, bytes);
    return bytes[spec.outputs[0].id];
}

dnnl_status_t status_with_host_scalar(const std::vector<node>& nodes, std::size_t scalar) {
    const auto partitions = partitions_of(build(nodes).get());
    auto* const partition = partitions.at(0).get();
    auto inputs = inputs_of(partition);
    const auto outputs = outputs_of(partition);
    const auto compiled = compile(partition, inputs, outputs);
    for (auto& input : inputs)
        if (input.id == scalar) input = scalar_of_host(scalar);
    auto bytes = scalar_memory(scalar, 42.5F);
    return execute(compiled.get(), inputs, outputs, bytes);
}

} // namespace maskwise::contract
