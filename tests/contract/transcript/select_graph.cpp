#include "select_graph.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <cstdint>

namespace maskwise::contract {

namespace {

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
    memory in, result;
    bound_tensors bound_inputs(inputs, in), bound_outputs(queried(compiled, outputs), result);
    out.status("execute", dnnl_graph_compiled_partition_execute(
                              compiled, cpu_stream(), bound_inputs.size(), bound_inputs.data(),
                              bound_outputs.size(), bound_outputs.data()));
    dnnl_stream_wait(cpu_stream());
    for (const auto& [id, bytes] : result) out.note("hash of dst", std::to_string(hash_of(bytes)));
}

} // namespace

select_case with_tensor(const logical_tensor& tensor) {
    const dims all{2, 3, 4};
    select_case result{dense(cond_id, dnnl_boolean, all), dense(src_0_id, dnnl_f32, all),
                       dense(src_1_id, dnnl_f32, all), dense(dst_id, dnnl_f32, all), ""};
    logical_tensor* const operands[] = {&result.cond, &result.src_0, &result.src_1, &result.dst};
    *operands[tensor.id] = tensor;
    return result;
}

logical_tensor with_layout(logical_tensor tensor, dnnl_graph_layout_type_t layout) {
    tensor.layout_type = layout;
    return tensor;
}

std::uint64_t hash_of(const std::vector<std::uint8_t>& bytes) {
    std::uint64_t hash = 1469598103934665603U;
    for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211U;
    return hash;
}

select_graph::select_graph(const transcript& out, const select_case& problem,
                           dnnl_graph_partition_policy_t policy)
    : out_(out), policy_(policy), graph_(make_graph()) {
    dnnl_graph_op_t op = nullptr;
    out.status("op_create", dnnl_graph_op_create(&op, 7, dnnl_graph_op_select, "sel"));
    op_.reset(op);
    for (const auto* input : {&problem.cond, &problem.src_0, &problem.src_1})
        dnnl_graph_op_add_input(op, input);
    dnnl_graph_op_add_output(op, &problem.dst);
    if (!problem.auto_broadcast.empty())
        out.status("op_set_attr_str",
                   dnnl_graph_op_set_attr_str(op, dnnl_graph_op_attr_auto_broadcast,
                                              problem.auto_broadcast.c_str(), 1));
    out.status("add_op", dnnl_graph_add_op(graph(), op));
}

dnnl_graph_partition_t select_graph::partition() {
    out_.status("finalize", dnnl_graph_graph_finalize(graph()));
    out_.status("filter", dnnl_graph_graph_filter(graph(), policy_));
    std::size_t count = 0;
    out_.status("get_partition_num", dnnl_graph_graph_get_partition_num(graph(), &count));
    out_.note("partitions", static_cast<std::int64_t>(count));
    if (count == 0) return nullptr;
    std::vector<dnnl_graph_partition_t> raw(count);
    out_.status("get_partitions", dnnl_graph_graph_get_partitions(graph(), count, raw.data()));
    for (auto* partition : raw) partitions_.emplace_back(partition);
    out_.note("supported", is_supported(raw[0]));
    return raw[0];
}

void compile_and_execute(const transcript& out, dnnl_graph_partition_t partition,
                         const std::vector<logical_tensor>& inputs,
                         const std::vector<logical_tensor>& outputs) {
    const auto compiled = make_compiled(partition);
    const auto status = compile_into(compiled.get(), partition, inputs, outputs);
    out.status("compile", status);
    if (status != dnnl_success) return;
    note_queries(out, compiled.get(), outputs);
    execute(out, compiled.get(), inputs, outputs);
}

} // namespace maskwise::contract
