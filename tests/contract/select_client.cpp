#include "select_client.hpp"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>

namespace maskwise::contract {
namespace {

namespace graph = dnnl::graph;
using logical_tensor = graph::logical_tensor;

logical_tensor described(std::size_t id, tensor_type type, const extents& shape) {
    return {id, type, shape, logical_tensor::layout_type::strided};
}

std::vector<logical_tensor> inputs_of(const client_select& what) {
    return {described(0, tensor_type::boolean, what.cond), described(1, what.type, what.src_0),
            described(2, what.type, what.src_1)};
}

logical_tensor output_of(const client_select& what) {
    return described(3, what.type, what.dst);
}

using owns_function = int (*)(const_dnnl_graph_compiled_partition_t);

owns_function find_owns() {
    return reinterpret_cast<owns_function>(dlsym(RTLD_DEFAULT, "maskwise_onednn_owns"));
}

// Position of element `index` of dst in an operand that broadcasts to it.
std::size_t broadcast_position(std::size_t index, const extents& dst, const extents& from) {
    std::size_t position = 0, step = 1;
    for (std::size_t i = 0; i < dst.size(); ++i) {
        const auto extent = static_cast<std::size_t>(dst[dst.size() - 1 - i]);
        const std::size_t coordinate = index % extent;
        index /= extent;
        if (i >= from.size()) continue;
        const auto own_extent = static_cast<std::size_t>(from[from.size() - 1 - i]);
        if (own_extent != 1) position += coordinate * step;
        step *= own_extent;
    }
    return position;
}

} // namespace

bool plugin_is_loaded() {
    return find_owns() != nullptr;
}

bool maskwise_owns(const graph::compiled_partition& compiled) {
    const auto owns = find_owns();
    return owns != nullptr && owns(compiled.get()) == 1;
}

dnnl::engine& engine() {
    static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
    return instance;
}

dnnl::stream& stream() {
    static dnnl::stream instance(engine());
    return instance;
}

graph::partition single_partition(const client_select& what) {
    graph::graph g(dnnl::engine::kind::cpu);
    g.add_op(graph::op(7, graph::op::kind::Select, inputs_of(what), {output_of(what)}, "sel"));
    g.finalize();
    return g.get_partitions().at(0);
}

graph::compiled_partition compile(const client_select& what) {
    return single_partition(what).compile(inputs_of(what), {output_of(what)}, engine());
}

void compile_again(const graph::partition& partition, const graph::compiled_partition& handle,
                   const client_select& what) {
    const auto described = [](std::size_t id, tensor_type type, const extents& shape) {
        dnnl_graph_logical_tensor_t made;
        dnnl::error::wrap_c_api(
            dnnl_graph_logical_tensor_init_with_dims(
                &made, id, static_cast<dnnl_data_type_t>(type), static_cast<int>(shape.size()),
                shape.data(), dnnl_graph_layout_type_strided, dnnl_graph_tensor_property_undef),
            "cannot describe a tensor");
        return made;
    };
    const auto cond = described(0, tensor_type::boolean, what.cond);
    const auto src_0 = described(1, what.type, what.src_0);
    const auto src_1 = described(2, what.type, what.src_1), dst = described(3, what.type, what.dst);
    const dnnl_graph_logical_tensor_t *inputs[] = {&cond, &src_0, &src_1}, *outputs[] = {&dst};
    dnnl::error::wrap_c_api(dnnl_graph_partition_compile(partition.get(), handle.get(), 3, inputs,
                                                         1, outputs, engine().get()),
                            "cannot compile a handle again");
}

void execute(const graph::compiled_partition& compiled, const client_select& what, const void* cond,
             const void* src_0, const void* src_1, void* dst) {
    const auto in = inputs_of(what);
    const graph::tensor c(in[0], engine(), const_cast<void*>(cond));
    const graph::tensor a(in[1], engine(), const_cast<void*>(src_0));
    const graph::tensor b(in[2], engine(), const_cast<void*>(src_1));
    const graph::tensor d(output_of(what), engine(), dst);
    compiled.execute(stream(), {c, a, b}, {d});
    stream().wait();
}

std::size_t element_count(const extents& shape) {
    std::size_t count = 1;
    for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
    return count;
}

std::size_t width_of(tensor_type type) {
    return type == tensor_type::f32 ? 4 : 2;
}

std::vector<std::uint8_t> expected(const client_select& what, const std::uint8_t* cond,
                                   const std::uint8_t* src_0, const std::uint8_t* src_1) {
    const std::size_t width = width_of(what.type), count = element_count(what.dst);
    std::vector<std::uint8_t> result(count * width);
    for (std::size_t i = 0; i < count; ++i) {
        const bool first = cond[broadcast_position(i, what.dst, what.cond)] != 0;
        const std::size_t position =
            broadcast_position(i, what.dst, first ? what.src_0 : what.src_1);
        std::memcpy(&result[i * width], (first ? src_0 : src_1) + position * width, width);
    }
    return result;
}

} // namespace maskwise::contract
