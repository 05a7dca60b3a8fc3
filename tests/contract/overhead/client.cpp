// usage: overhead OPS MILLISECONDS. Repeatedly builds and partitions a chain of OPS element-wise
// operators without Select, for MILLISECONDS. Prints the fastest round's CPU time in nanoseconds.
// compare_overhead.py compares the times with and without the plugin.

#include "oneapi/dnnl/dnnl_graph.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <vector>

namespace {

dnnl_graph_logical_tensor_t tensor(std::size_t id) {
    dnnl_graph_logical_tensor_t result{};
    const dnnl_dims_t extents = {8, 64};
    dnnl_graph_logical_tensor_init_with_dims(&result, id, dnnl_f32, 2, extents,
                                             dnnl_graph_layout_type_strided,
                                             dnnl_graph_tensor_property_undef);
    return result;
}

void require(dnnl_status_t status) {
    if (status != dnnl_success) std::exit(1);
}

// Adds a chain of operators, alternately x + x and relu(x).
void add_ops(dnnl_graph_graph_t graph, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const bool adds = i % 2 == 0;
        const auto input = tensor(i), output = tensor(i + 1);
        dnnl_graph_op_t op = nullptr;
        require(dnnl_graph_op_create(&op, i, adds ? dnnl_graph_op_add : dnnl_graph_op_relu,
                                     "an_operator_of_a_chain"));
        require(dnnl_graph_op_add_input(op, &input));
        if (adds) require(dnnl_graph_op_add_input(op, &input));
        require(dnnl_graph_op_add_output(op, &output));
        if (adds)
            require(dnnl_graph_op_set_attr_str(op, dnnl_graph_op_attr_auto_broadcast, "numpy", 5));
        require(dnnl_graph_add_op(graph, op));
        require(dnnl_graph_op_destroy(op));
    }
}

void build_and_partition(std::size_t ops) {
    dnnl_graph_graph_t graph = nullptr;
    require(dnnl_graph_graph_create(&graph, dnnl_cpu));
    add_ops(graph, ops);
    require(dnnl_graph_graph_finalize(graph));
    require(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion));
    std::size_t count = 0;
    require(dnnl_graph_graph_get_partition_num(graph, &count));
    std::vector<dnnl_graph_partition_t> partitions(count);
    require(dnnl_graph_graph_get_partitions(graph, count, partitions.data()));
    for (auto* partition : partitions) require(dnnl_graph_partition_destroy(partition));
    require(dnnl_graph_graph_destroy(graph));
}

double nanoseconds_worked() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const auto ops = static_cast<std::size_t>(std::atoi(argv[1]));
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::milliseconds(std::atoi(argv[2]));
    double fastest = std::numeric_limits<double>::max();
    while (clock::now() < end) {
        const double start = nanoseconds_worked();
        build_and_partition(ops);
        fastest = std::min(fastest, nanoseconds_worked() - start);
    }
    std::printf("%.0f\n", fastest);
    return 0;
}
