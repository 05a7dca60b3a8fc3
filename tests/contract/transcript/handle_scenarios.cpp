// Null handles, wrong counts and early queries. Clients may rely on the results.

#include "select_graph.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <array>

namespace maskwise::contract {
namespace {

const select_case plain = with_tensor(dense(dst_id, dnnl_f32, {2, 3, 4}));

void null_handles(const transcript& out, const void*) {
    out.status("op_destroy", dnnl_graph_op_destroy(nullptr));
    out.status("graph_destroy", dnnl_graph_graph_destroy(nullptr));
    out.status("partition_destroy", dnnl_graph_partition_destroy(nullptr));
    out.status("compiled_partition_destroy", dnnl_graph_compiled_partition_destroy(nullptr));
    out.status("tensor_destroy", dnnl_graph_tensor_destroy(nullptr));
    out.status("allocator_destroy", dnnl_graph_allocator_destroy(nullptr));
    out.status("op_create", dnnl_graph_op_create(nullptr, 0, dnnl_graph_op_select, "x"));
    dnnl_graph_op_t op = nullptr;
    out.status("op_create without name",
               dnnl_graph_op_create(&op, 0, dnnl_graph_op_select, nullptr));
    out.status("add_input", dnnl_graph_op_add_input(nullptr, nullptr));
    out.status("add_op", dnnl_graph_add_op(nullptr, nullptr));
    out.status("finalize", dnnl_graph_graph_finalize(nullptr));
    out.status("filter", dnnl_graph_graph_filter(nullptr, dnnl_graph_partition_policy_fusion));
    std::size_t count = 0;
    out.status("get_partition_num", dnnl_graph_graph_get_partition_num(nullptr, &count));
    out.status("is_supported", dnnl_graph_partition_is_supported(nullptr, nullptr));
    out.status("execute",
               dnnl_graph_compiled_partition_execute(nullptr, nullptr, 0, nullptr, 0, nullptr));
    out.status("query", dnnl_graph_compiled_partition_query_logical_tensor(nullptr, 0, nullptr));
    out.status("inplace",
               dnnl_graph_compiled_partition_get_inplace_ports(nullptr, nullptr, nullptr));
}

void graph_states(const transcript& out, const void*) {
    select_graph graph(out, plain);
    std::size_t count = 77;
    out.status("num before filter", dnnl_graph_graph_get_partition_num(graph.graph(), &count));
    out.note("count before filter", static_cast<std::int64_t>(count));
    out.status("filter before finalize",
               dnnl_graph_graph_filter(graph.graph(), dnnl_graph_partition_policy_fusion));
    out.status("same id again", dnnl_graph_add_op(graph.graph(), graph.op()));
    out.status("finalize", dnnl_graph_graph_finalize(graph.graph()));
    out.status("finalize again", dnnl_graph_graph_finalize(graph.graph()));
    out.status("add after finalize", dnnl_graph_add_op(graph.graph(), graph.op()));
    for (const auto policy : {dnnl_graph_partition_policy_fusion, dnnl_graph_partition_policy_debug,
                              dnnl_graph_partition_policy_fusion}) {
        out.status("filter", dnnl_graph_graph_filter(graph.graph(), policy));
        dnnl_graph_graph_get_partition_num(graph.graph(), &count);
        out.note("partitions", static_cast<std::int64_t>(count));
    }
    out.status("get_partitions of 0", dnnl_graph_graph_get_partitions(graph.graph(), 0, nullptr));
}

void too_many_partitions_asked(const transcript& out, const void*) {
    select_graph graph(out, plain);
    dnnl_graph_graph_finalize(graph.graph());
    dnnl_graph_graph_filter(graph.graph(), dnnl_graph_partition_policy_fusion);
    std::array<dnnl_graph_partition_t, 3> partitions{};
    out.status("get_partitions",
               dnnl_graph_graph_get_partitions(graph.graph(), 3, partitions.data()));
    for (const auto& partition : partitions) {
        out.note("is there", partition != nullptr);
        if (partition != nullptr) dnnl_graph_partition_destroy(partition);
    }
}

void ports(const transcript& out, const void*) {
    select_case problem = plain;
    problem.src_1 = problem.src_0; // one tensor in two slots counts twice
    select_graph graph(out, problem);
    const auto partition = graph.partition();
    if (partition == nullptr) return;
    std::size_t count = 0;
    out.status("input num", dnnl_graph_partition_get_input_ports_num(partition, &count));
    std::vector<logical_tensor> inputs(count);
    out.status("inputs", dnnl_graph_partition_get_input_ports(partition, count, inputs.data()));
    for (const auto& input : inputs) out.note("input " + std::to_string(input.id), text_of(input));
    out.status("inputs, one less",
               dnnl_graph_partition_get_input_ports(partition, count - 1, inputs.data()));
    out.status("output num", dnnl_graph_partition_get_output_ports_num(partition, &count));
    out.note("outputs", static_cast<std::int64_t>(count));
    out.status("op num", dnnl_graph_partition_get_op_num(partition, &count));
    std::vector<std::size_t> ids(count);
    out.status("ops", dnnl_graph_partition_get_ops(partition, count, ids.data()));
    for (const std::size_t id : ids) out.note("op", static_cast<std::int64_t>(id));
    out.status("ops, one more", dnnl_graph_partition_get_ops(partition, count + 1, ids.data()));
    dnnl_engine_kind_t kind{};
    out.status("engine kind", dnnl_graph_partition_get_engine_kind(partition, &kind));
    out.note("kind", kind);
}

void compile_nulls(const transcript& out, const void*) {
    select_graph graph(out, plain);
    const auto partition = graph.partition();
    if (partition == nullptr) return;
    dnnl_graph_compiled_partition_t compiled = nullptr;
    out.status("create", dnnl_graph_compiled_partition_create(&compiled, partition));
    out.status("create without partition",
               dnnl_graph_compiled_partition_create(&compiled, nullptr));
    const logical_tensor* inputs[] = {&plain.cond, &plain.src_0, &plain.src_1};
    const logical_tensor* outputs[] = {&plain.dst};
    out.status("no partition", dnnl_graph_partition_compile(nullptr, compiled, 3, inputs, 1,
                                                            outputs, cpu_engine()));
    out.status("no compiled partition", dnnl_graph_partition_compile(partition, nullptr, 3, inputs,
                                                                     1, outputs, cpu_engine()));
    out.status("no engine",
               dnnl_graph_partition_compile(partition, compiled, 3, inputs, 1, outputs, nullptr));
}

// A query for an unknown id succeeds with an empty result, although the header suggests an error.
void queries(const transcript& out, const void*) {
    select_graph graph(out, plain);
    const auto partition = graph.partition();
    if (partition == nullptr) return;
    const auto owner = make_compiled(partition);
    auto* const compiled = owner.get();
    out.status("compile", compile_into(compiled, partition, {plain.cond, plain.src_0, plain.src_1},
                                       {plain.dst}));
    for (const std::size_t id : {cond_id, dst_id, std::size_t{55}}) {
        logical_tensor answer = dense(42, dnnl_f32, {9});
        out.status("query",
                   dnnl_graph_compiled_partition_query_logical_tensor(compiled, id, &answer));
        out.note("answer",
                 std::to_string(static_cast<std::int64_t>(answer.id)) + ' ' + text_of(answer));
    }
    out.status("query into null",
               dnnl_graph_compiled_partition_query_logical_tensor(compiled, dst_id, nullptr));
    std::size_t count = 0;
    out.status("inplace into null",
               dnnl_graph_compiled_partition_get_inplace_ports(compiled, &count, nullptr));
    out.status("execute without stream",
               dnnl_graph_compiled_partition_execute(compiled, nullptr, 0, nullptr, 0, nullptr));
    out.status("execute without tensors", dnnl_graph_compiled_partition_execute(
                                              compiled, cpu_stream(), 0, nullptr, 0, nullptr));
}

void capacities(const transcript& out, const void*) {
    int capacity = 0;
    out.status("get", dnnl_graph_get_compiled_partition_cache_capacity(&capacity));
    out.note("capacity", capacity);
    out.status("set", dnnl_graph_set_compiled_partition_cache_capacity(0));
    out.status("set back", dnnl_graph_set_compiled_partition_cache_capacity(capacity));
    out.status("negative", dnnl_graph_set_compiled_partition_cache_capacity(-1));
    out.status("null", dnnl_graph_get_compiled_partition_cache_capacity(nullptr));
}

} // namespace

void add_handle_scenarios(std::vector<scenario>& all_scenarios) {
    all_scenarios.push_back({"handles/null", null_handles});
    all_scenarios.push_back({"handles/graph_states", graph_states});
    all_scenarios.push_back({"handles/too_many_partitions_asked", too_many_partitions_asked});
    all_scenarios.push_back({"handles/ports", ports});
    all_scenarios.push_back({"handles/compile_nulls", compile_nulls});
    all_scenarios.push_back({"handles/queries", queries});
    all_scenarios.push_back({"handles/capacities", capacities});
}

} // namespace maskwise::contract
