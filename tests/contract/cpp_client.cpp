#include "cpp_client.hpp"

#include <cstring>

namespace maskwise::contract {
namespace {

void fill(std::vector<std::uint8_t>& bytes, const logical_tensor& port) {
    bytes.assign(port.get_mem_size(), 1); // masks are true
    if (port.get_data_type() == boolean) return;
    for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
        const float value = static_cast<float>(i / sizeof(float) % 7) * 0.5F;
        std::memcpy(bytes.data() + i, &value, sizeof value);
    }
}

std::vector<dnnl::graph::tensor> tensors_at(const std::vector<bound>& list) {
    std::vector<dnnl::graph::tensor> tensors;
    for (const auto& [desc, memory] : list) tensors.emplace_back(desc, engine(), memory);
    return tensors;
}

} // namespace

dnnl::engine& engine() {
    static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
    return instance;
}

dnnl::stream& stream() {
    static dnnl::stream instance(engine());
    return instance;
}

op soft_max(std::size_t id, const logical_tensor& input, const logical_tensor& output,
            std::int64_t axis) {
    op result = make(id, kind::SoftMax, {input}, output);
    result.set_attr<std::int64_t>(op::attr::axis, axis);
    return result;
}

std::vector<partition> partitions_of(const std::vector<op>& ops, partition::policy which) {
    dnnl::graph::graph graph(dnnl::engine::kind::cpu);
    for (const op& each : ops) graph.add_op(each);
    graph.finalize();
    return graph.get_partitions(which);
}

std::size_t id_of(const op& node) {
    std::size_t id = 0;
    dnnl::error::wrap_c_api(dnnl_graph_op_get_id(node.get(), &id), "an operator without id");
    return id;
}

ids ids_of(const std::vector<logical_tensor>& ports) {
    ids result;
    for (const auto& port : ports) result.push_back(port.get_id());
    return result;
}

std::size_t element_count(const extents& shape) {
    std::size_t count = 1;
    for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
    return count;
}

void execute(const dnnl::graph::compiled_partition& compiled, const std::vector<bound>& inputs,
             const std::vector<bound>& outputs) {
    compiled.execute(stream(), tensors_at(inputs), tensors_at(outputs));
    stream().wait();
}

void run(const std::vector<partition>& partitions, tensors& memory,
         const std::map<std::size_t, logical_tensor>& now) {
    const auto described = [&now](std::vector<logical_tensor> ports) {
        for (auto& port : ports)
            if (const auto entry = now.find(port.get_id()); entry != now.end())
                port = entry->second;
        return ports;
    };
    for (const partition& each : partitions) {
        const auto inputs = described(each.get_input_ports());
        const auto outputs = described(each.get_output_ports());
        const auto compiled = compile(each, inputs, outputs);
        std::vector<bound> from, to;
        for (const auto& input : inputs) {
            auto& bytes = memory[input.get_id()];
            if (bytes.empty()) fill(bytes, input);
            from.push_back({input, bytes.data()});
        }
        for (const auto& output : outputs) {
            auto& bytes = memory[output.get_id()];
            bytes.assign(output.get_mem_size(), 0xEE);
            to.push_back({output, bytes.data()});
        }
        execute(compiled, from, to);
    }
}

float element(const tensors& memory, std::size_t id, std::size_t index) {
    float value = 0;
    std::memcpy(&value, memory.at(id).data() + index * sizeof value, sizeof value);
    return value;
}

} // namespace maskwise::contract
