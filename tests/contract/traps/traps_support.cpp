#include "traps_support.hpp"

#include "select_graph.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

namespace maskwise::contract {
namespace {

// Calls the function of that name with these arguments, if the process has it.
template <typename... Arguments>
dnnl_status_t call(const char* name, Arguments... arguments) {
    void* const address = dlsym(RTLD_DEFAULT, name);
    if (address == nullptr) return dnnl_unimplemented;
    return reinterpret_cast<dnnl_status_t (*)(Arguments...)>(address)(arguments...);
}

owned<dnnl_graph_tensor_t> tensor_at(const logical_tensor& what, void* data) {
    dnnl_graph_tensor_t handle = nullptr;
    dnnl_graph_tensor_create(&handle, &what, cpu_engine(), data);
    return owned<dnnl_graph_tensor_t>(handle);
}

// The tensors of one execution with buffers of their own.
struct bound_node {
    memory bytes;
    std::vector<owned<dnnl_graph_tensor_t>> owners;
    std::vector<const_dnnl_graph_tensor_t> inputs, outputs;

    void add(std::vector<const_dnnl_graph_tensor_t>& list, owned<dnnl_graph_tensor_t> tensor) {
        list.push_back(tensor.get());
        owners.push_back(std::move(tensor));
    }
    void add(std::vector<const_dnnl_graph_tensor_t>& list, const logical_tensor& what) {
        add(list, tensor_at(what, (bytes[what.id] = filled_buffer(what)).data()));
    }
};

bound_node bind(const node& what) {
    bound_node bound;
    for (const auto& input : what.inputs) bound.add(bound.inputs, input);
    for (const auto& output : what.outputs) bound.add(bound.outputs, output);
    return bound;
}

struct thrown_by_the_client : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void* allocate_nothing(std::size_t, std::size_t) {
    throw thrown_by_the_client("no memory today");
}

void free_nothing(void*) {}

} // namespace

bool plugin_expected() {
    const char* const text = std::getenv("MASKWISE_EXPECT");
    return text != nullptr && std::strcmp(text, "plugin") == 0;
}

bool maskwise_owns(dnnl_graph_compiled_partition_t compiled) {
    void* const address = dlsym(RTLD_DEFAULT, "maskwise_onednn_owns");
    return address != nullptr &&
           reinterpret_cast<int (*)(const_dnnl_graph_compiled_partition_t)>(address)(compiled) == 1;
}

bool has_since(int major, int minor) {
    const auto* const version = dnnl_version();
    return version->major > major || (version->major == major && version->minor >= minor);
}

bool is_sycl() {
    return dnnl_version()->cpu_runtime == DNNL_RUNTIME_SYCL;
}

bool is_equal(const logical_tensor& a, const logical_tensor& b) {
    std::uint8_t equal = 0;
    return dnnl_graph_logical_tensor_is_equal(&a, &b, &equal) == dnnl_success && equal != 0;
}

owned_graph build_open() {
    dnnl_graph_graph_t graph = nullptr;
    dnnl_graph_graph_create(&graph, dnnl_cpu);
    return owned_graph(graph);
}

dnnl_status_t compile_into(dnnl_graph_compiled_partition_t compiled,
                           dnnl_graph_partition_t partition,
                           const std::vector<logical_tensor>& inputs,
                           const std::vector<logical_tensor>& outputs) {
    std::vector<const logical_tensor*> in, out;
    for (const auto& input : inputs) in.push_back(&input);
    for (const auto& output : outputs) out.push_back(&output);
    return dnnl_graph_partition_compile(partition, compiled, in.size(), in.data(), out.size(),
                                        out.data(), cpu_engine());
}

dnnl_status_t compile_status(dnnl_graph_partition_t partition,
                             const std::vector<logical_tensor>& inputs,
                             const std::vector<logical_tensor>& outputs) {
    dnnl_graph_compiled_partition_t compiled = nullptr;
    dnnl_graph_compiled_partition_create(&compiled, partition);
    const owned_compiled owner(compiled);
    return compile_into(compiled, partition, inputs, outputs);
}

void ask_mangled_partition_kind(dnnl_graph_partition_t partition) {
    int kind = 0;
    call("_Z29dnnl_graph_partition_get_kindPK20dnnl_graph_partitionPN4dnnl4impl5graph16partition_"
         "kind_tE",
         const_dnnl_graph_partition_t(partition), &kind);
}

dnnl_status_t execute_sycl(dnnl_graph_compiled_partition_t compiled, const node& what,
                           const void* deps) {
    auto bound = bind(what);
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

std::vector<std::uint8_t> execute_v2(dnnl_graph_compiled_partition_t compiled, const node& what) {
    auto bound = bind(what);
    const auto status = call("dnnl_graph_compiled_partition_execute_v2",
                             const_dnnl_graph_compiled_partition_t(compiled), cpu_stream(),
                             bound.inputs.size(), bound.inputs.data(), bound.outputs.size(),
                             bound.outputs.data(), const_dnnl_graph_tensor_t(nullptr));
    dnnl_stream_wait(cpu_stream());
    return status == dnnl_success ? bound.bytes[what.outputs[0].id] : std::vector<std::uint8_t>{};
}

logical_tensor logical_tensor_of_a_tensor(const logical_tensor& what) {
    const auto tensor = tensor_at(what, nullptr);
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
    const logical_tensor what = dense(1, dnnl_f32, {16});
    dnnl_graph_tensor_t tensor = nullptr;
    bool caught = false;
    try {
        dnnl_graph_tensor_create(&tensor, &what, engine, DNNL_MEMORY_ALLOCATE);
    } catch (const thrown_by_the_client&) {
        caught = true;
    }
    dnnl_engine_destroy(engine);
    dnnl_graph_allocator_destroy(allocator);
    return caught;
}

logical_tensor host_scalar(std::size_t id) {
    constexpr auto property = static_cast<dnnl_graph_tensor_property_t>(3);
    logical_tensor made{};
    dnnl_graph_logical_tensor_init(&made, id, dnnl_f32, 0, dnnl_graph_layout_type_strided,
                                   property);
    return made;
}

namespace {

owned<dnnl_graph_tensor_t> scalar_tensor(std::size_t id, float value) {
    const logical_tensor what = host_scalar(id);
    dnnl_graph_tensor_t made = nullptr;
    call("dnnl_graph_tensor_create_scalar", &made, &what, static_cast<void*>(&value));
    value = -1; // the tensor has its own copy
    return owned<dnnl_graph_tensor_t>(made);
}

} // namespace

std::vector<std::uint8_t> run_with_host_scalar(const node& what, std::size_t slot, float value) {
    const auto graph = build({what});
    const auto partitions = partitions_of(graph.get(), dnnl_graph_partition_policy_fusion);
    const auto compiled = compile(partitions.at(0).get(), what.inputs, what.outputs);
    if (!compiled) return {};
    bound_node bound;
    for (std::size_t i = 0; i < what.inputs.size(); ++i) {
        if (i != slot) {
            bound.add(bound.inputs, what.inputs[i]);
            continue;
        }
        bound.add(bound.inputs, scalar_tensor(what.inputs[i].id, value));
    }
    bound.add(bound.outputs, what.outputs[0]);
    const auto status =
        dnnl_graph_compiled_partition_execute(compiled.get(), cpu_stream(), bound.inputs.size(),
                                              bound.inputs.data(), 1, bound.outputs.data());
    return status == dnnl_success ? bound.bytes[what.outputs[0].id] : std::vector<std::uint8_t>{};
}

std::vector<std::uint8_t> select_with_scalar(const node& what, std::size_t slot, float value) {
    memory bytes;
    auto& buffer = bytes[what.inputs[slot].id];
    buffer.resize(sizeof(value));
    std::memcpy(buffer.data(), &value, sizeof(value));
    select_by_reference(what, bytes);
    return bytes[what.outputs[0].id];
}

dnnl_status_t status_with_host_scalar(const std::vector<node>& nodes, std::size_t scalar) {
    const auto graph = build(nodes);
    const auto partitions = partitions_of(graph.get(), dnnl_graph_partition_policy_fusion);
    auto* const partition = partitions.at(0).get();
    const auto inputs = inputs_of(partition), outputs = outputs_of(partition);
    const auto compiled = compile(partition, inputs, outputs);
    bound_node bound;
    for (const auto& input : inputs) {
        if (input.id == scalar)
            bound.add(bound.inputs, scalar_tensor(input.id, 42.5F));
        else
            bound.add(bound.inputs, input);
    }
    bound.add(bound.outputs, outputs.at(0));
    return dnnl_graph_compiled_partition_execute(compiled.get(), cpu_stream(), bound.inputs.size(),
                                                 bound.inputs.data(), 1, bound.outputs.data());
}

} // namespace maskwise::contract
