// Notes the number, order, ports and operators of partitions. Most graphs contain Selects.

#include "select_graph.hpp"

namespace maskwise::contract {
namespace {

constexpr auto f32 = dnnl_f32;
constexpr auto boolean = dnnl_boolean;

logical_tensor t(std::size_t id) {
    return dense(id, f32, {4, 8});
}
logical_tensor mask(std::size_t id) {
    return dense(id, boolean, {8});
}
logical_tensor square(std::size_t id) {
    return dense(id, f32, {8, 8});
}

// Names of noted calls contain the policy, because differences.txt lists differences of these
// scenarios only under policy fusion.
std::string name_of(dnnl_graph_partition_policy_t policy) {
    return policy == dnnl_graph_partition_policy_fusion ? "fusion " : "debug ";
}

std::string text_of(const std::vector<std::size_t>& ids) {
    std::string text;
    for (const std::size_t id : ids) text += ' ' + std::to_string(id);
    return text;
}

std::string ids_of(const std::vector<logical_tensor>& ports) {
    std::vector<std::size_t> ids;
    for (const auto& port : ports) ids.push_back(port.id);
    return text_of(ids);
}

// Partition ids differ from run to run, so they are not noted.
void note_partition(const transcript& out, const std::string& prefix,
                    dnnl_graph_partition_t partition) {
    out.note(prefix + "ops", text_of(ops_of(partition)));
    out.note(prefix + "supported", is_supported(partition));
    out.note(prefix + "ports",
             "in" + ids_of(inputs_of(partition)) + " out" + ids_of(outputs_of(partition)));
}

void note_partitions(const transcript& out, dnnl_graph_graph_t graph,
                     dnnl_graph_partition_policy_t policy) {
    out.status("filter", dnnl_graph_graph_filter(graph, policy));
    const auto partitions = partitions_of(graph, policy);
    out.note(name_of(policy) + "partitions", static_cast<std::int64_t>(partitions.size()));
    for (const auto& partition : partitions) note_partition(out, name_of(policy), partition.get());
}

// Notes every tensor's content after the whole graph has run.
void note_memory(const transcript& out, const std::vector<node>& nodes,
                 dnnl_graph_partition_policy_t policy) {
    const auto bytes = run_graph(nodes, policy);
    out.note("runs", !bytes.empty());
    for (const auto& [id, buffer] : bytes)
        out.note(name_of(policy) + "bytes of " + std::to_string(id),
                 std::to_string(hash_of(buffer)));
}

void run(const transcript& out, const std::vector<node>& nodes) {
    auto graph = make_graph();
    for (const auto& each : nodes) // add_op copies the operator
        out.status("add_op", dnnl_graph_add_op(graph.get(), make_op(each).get()));
    out.status("finalize", dnnl_graph_graph_finalize(graph.get()));
    note_partitions(out, graph.get(), dnnl_graph_partition_policy_fusion);
    note_partitions(out, graph.get(), dnnl_graph_partition_policy_debug);
    note_partitions(out, graph.get(), dnnl_graph_partition_policy_fusion);
    graph.reset();
    note_memory(out, nodes, dnnl_graph_partition_policy_fusion);
    note_memory(out, nodes, dnnl_graph_partition_policy_debug);
}

// Maskwise leaves engines other than the CPU's to oneDNN.
void gpu_engine_kind(const transcript& out, const void*) {
    const auto op = make_op({1, dnnl_graph_op_select, {mask(10), t(11), t(12)}, {t(13)}});
    dnnl_graph_graph_t graph = nullptr;
    out.status("graph_create", dnnl_graph_graph_create(&graph, dnnl_gpu));
    out.status("add_op", dnnl_graph_add_op(graph, op.get()));
    out.status("finalize", dnnl_graph_graph_finalize(graph));
    const auto partitions = partitions_of(graph, dnnl_graph_partition_policy_fusion);
    for (const auto& partition : partitions)
        out.note("is supported", is_supported(partition.get()));
    dnnl_graph_graph_destroy(graph);
    dnnl_graph_partition_t single = nullptr;
    out.status("create_with_op", dnnl_graph_partition_create_with_op(&single, op.get(), dnnl_gpu));
    out.note("is supported", is_supported(single));
    dnnl_graph_partition_destroy(single);
}

// A partition is created even if a tensor has an impossible rank, because only compile reads ranks.
void impossible_rank(const transcript& out, const void*) {
    for (const int rank : {-7, 13}) {
        logical_tensor source = t(11);
        source.ndims = rank;
        const node select{1, dnnl_graph_op_select, {mask(10), source, t(12)}, {t(13)}};
        const auto graph = build({select});
        out.status("filter",
                   dnnl_graph_graph_filter(graph.get(), dnnl_graph_partition_policy_fusion));
        dnnl_graph_partition_t partition = nullptr;
        out.status("get_partitions", dnnl_graph_graph_get_partitions(graph.get(), 1, &partition));
        const owned_partition keeper(partition);
        out.note("is supported", is_supported(partition));
        out.note("compiled", compile(partition, {mask(10), t(11), t(12)}, {t(13)}) != nullptr);
        dnnl_graph_partition_t single = nullptr;
        out.status("create_with_op",
                   dnnl_graph_partition_create_with_op(&single, make_op(select).get(), dnnl_cpu));
        dnnl_graph_partition_destroy(single);
    }
}

logical_tensor scalar(std::size_t id) {
    return dense(id, f32, {1});
}

// The operators of an attention partition: MatMul, scale, mask, SoftMax and MatMul.
std::vector<node> attention(dnnl_data_type_t type) {
    std::vector<node> nodes{{1, dnnl_graph_op_matmul, {t(10), square(11)}, {t(12)}},
                            {2, dnnl_graph_op_divide, {t(12), scalar(13)}, {t(14)}},
                            {3, dnnl_graph_op_select, {mask(15), t(14), scalar(16)}, {t(17)}},
                            {4, dnnl_graph_op_softmax, {t(17)}, {t(18)}},
                            {5, dnnl_graph_op_matmul, {t(18), square(19)}, {t(20)}}};
    for (auto& each : nodes)
        for (auto* tensors : {&each.inputs, &each.outputs})
            for (auto& tensor : *tensors)
                if (tensor.data_type == f32) tensor.data_type = type;
    return nodes;
}

// If the CPU lacks bf16 or f16, oneDNN alone and the plugin refuse the same types. benchdnn tests
// rounding.
void attention_in_16_bits(const transcript& out, const void*) {
    for (const auto type : {dnnl_bf16, dnnl_f16})
        out.note("runs", !run_graph(attention(type), dnnl_graph_partition_policy_fusion).empty());
}

struct graph_case {
    const char* name;
    std::vector<node> nodes;
};

const std::vector<graph_case>& cases() {
    constexpr auto select = dnnl_graph_op_select, relu = dnnl_graph_op_relu,
                   matmul = dnnl_graph_op_matmul, add = dnnl_graph_op_add;
    static const std::vector<graph_case> list = {
        {"without_select", {{1, add, {t(10), t(11)}, {t(12)}}, {2, relu, {t(12)}, {t(13)}}}},
        {"select_then_relu",
         {{1, select, {mask(10), t(11), t(12)}, {t(13)}}, {2, relu, {t(13)}, {t(14)}}}},
        {"select_then_softmax",
         {{1, select, {mask(10), t(11), t(12)}, {t(13)}},
          {2,
           dnnl_graph_op_softmax,
           {t(13)},
           {t(14)},
           {{dnnl_graph_op_attr_axis, std::vector<std::int64_t>{-1}}}}}},
        {"two_selects_sharing_inputs",
         {{1, select, {mask(10), t(11), t(12)}, {t(13)}},
          {2, select, {mask(10), t(12), t(11)}, {t(14)}}}},
        {"chain_of_selects",
         {{1, select, {mask(10), t(11), t(12)}, {t(13)}},
          {2, select, {mask(15), t(13), t(12)}, {t(14)}}}},
        {"matmul_feeds_select",
         {{1, matmul, {t(10), square(11)}, {t(12)}},
          {2, select, {mask(13), t(12), t(14)}, {t(15)}}}},
        {"select_feeds_matmul",
         {{1, select, {mask(10), t(11), t(12)}, {t(13)}},
          {2, matmul, {t(13), square(14)}, {t(15)}}}},
        {"select_feeds_end",
         {{1, select, {mask(10), t(11), t(12)}, {t(13)}},
          {2, dnnl_graph_op_end, {t(13)}, {}},
          {3, relu, {t(13)}, {t(14)}}}},
        {"duplicate_id",
         {{1, relu, {t(11)}, {t(12)}}, {1, select, {mask(10), t(12), t(13)}, {t(14)}}}},
        {"attention_with_mask", attention(f32)},
        // Two Selects share a mask and sources. A third Select reads one result and the sum of both
        // results.
        {"diamond_of_selects",
         {{1, select, {mask(10), t(11), scalar(12)}, {t(13)}},
          {2, select, {mask(10), scalar(12), t(11)}, {t(14)}},
          {3, add, {t(13), t(14)}, {t(15)}},
          {4, select, {mask(16), t(15), t(13)}, {t(17)}},
          {5, relu, {t(17)}, {t(18)}}}},
        // The last operator is added first. Partitions come in topological order, not in the order
        // of add_op.
        {"added_backwards",
         {{3, relu, {t(15)}, {t(16)}},
          {2, select, {mask(10), t(13), scalar(14)}, {t(15)}},
          {1, add, {t(11), t(12)}, {t(13)}}}},
        {"two_unconnected_selects",
         {{1, select, {mask(10), t(11), t(12)}, {t(13)}},
          {2, select, {mask(20), square(21), square(22)}, {square(23)}},
          {3, relu, {t(30)}, {t(31)}}}},
        {"select_between_matmuls",
         {{1, matmul, {t(10), square(11)}, {t(12)}},
          {2, relu, {t(12)}, {t(13)}},
          {3, select, {mask(14), scalar(15), t(13)}, {t(16)}},
          {4, matmul, {t(16), square(17)}, {t(18)}}}},
    };
    return list;
}

void run_case(const transcript& out, const void* data) {
    run(out, static_cast<const graph_case*>(data)->nodes);
}

} // namespace

void add_graph_scenarios(std::vector<scenario>& all) {
    for (const auto& problem : cases())
        all.push_back({std::string("graph/") + problem.name, run_case, &problem});
    all.push_back({"graph/gpu_engine_kind", gpu_engine_kind});
    all.push_back({"graph/impossible_rank", impossible_rank});
    all.push_back({"graph/attention_in_16_bits", attention_in_16_bits});
}

} // namespace maskwise::contract
