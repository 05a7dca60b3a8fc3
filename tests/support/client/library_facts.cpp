#include "support/client/library_facts.hpp"

#include "support/client/graph_client.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <exception>

namespace maskwise::test {
namespace {

// Never destroyed: after oneDNN throws, its cache has an entry that points into the partition.
std::vector<owned_partition>& tried_partitions() {
    static auto& partitions = *new std::vector<owned_partition>;
    return partitions;
}

bool runs_mat_mul(dnnl_data_type_t type) {
    const dims square{8, 8};
    return runs_alone(make_op({1,
                               dnnl_graph_op_matmul,
                               {dense(1, type, square), dense(2, type, square)},
                               {dense(3, type, square)}})
                          .get());
}

library_facts query_library() {
    const auto may_use = [](dnnl_cpu_isa_t isa) {
        return (dnnl_get_effective_cpu_isa() & isa) == isa;
    };
    return {dnnl_version()->minor, may_use(dnnl_cpu_isa_avx512_core), runs_mat_mul(dnnl_bf16),
            runs_mat_mul(dnnl_f16)};
}

} // namespace

const library_facts& library() {
    static const library_facts facts = query_library();
    return facts;
}

bool is_sycl() {
    return dnnl_version()->cpu_runtime == DNNL_RUNTIME_SYCL;
}

bool merges() {
    return plugin_is_loaded() && knows_select();
}

bool runs_alone(dnnl_graph_op_t op) {
    const auto graph = make_graph();
    dnnl_graph_add_op(graph.get(), op);
    dnnl_graph_graph_finalize(graph.get());
    auto partitions = partitions_of(graph.get());
    if (partitions.size() != 1 || !is_supported(partitions[0].get())) return false;
    auto* const partition = tried_partitions().emplace_back(std::move(partitions[0])).get();
    try {
        return compile(partition, inputs_of(partition), outputs_of(partition)) != nullptr;
    } catch (const std::exception&) { // std::future_error
        return false;
    }
}

} // namespace maskwise::test
