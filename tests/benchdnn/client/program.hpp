#pragma once

#include "client/library.hpp"
#include "model/graph.hpp"

#include <vector>

namespace maskwise::bench {

// One partition, with inputs and outputs in port order.
struct program_step {
    test::owned_partition partition;
    test::owned_compiled compiled;
    std::vector<std::size_t> op_ids;
    bool supported = false;
    bool owned_by_maskwise = false;
    std::vector<dnnl_graph_logical_tensor_t> inputs;
    std::vector<dnnl_graph_logical_tensor_t> outputs; // after compile: in oneDNN's layout
};

// A oneDNN graph with its partitions.
class program {
public:
    // Builds, finalizes and partitions the graph. Throws test::failed_call.
    explicit program(const graph& g);

    // Compiles every partition in order. `any_between`: tensors between partitions get layout
    // `any`. Throws test::failed_call, or std::runtime_error if an output is not strided after
    // compile.
    void compile(bool any_between);

    const std::vector<program_step>& steps() const { return steps_; }
    const graph& source() const { return graph_; }

private:
    void add_steps();
    void compile_step(program_step& step, bool any_between);
    void query_outputs(program_step& step);
    bool read_by_later_step(const program_step& step, std::size_t id) const;

    const test::failures_are_thrown thrown_;
    graph graph_;
    test::owned_graph handle_;
    std::vector<program_step> steps_;
    std::map<std::size_t, dnnl_graph_logical_tensor_t> produced_; // compiled outputs, by id
};

dnnl_graph_logical_tensor_t to_onednn(const logical_tensor& t);

dims shape_of(const dnnl_graph_logical_tensor_t& t);
dims strides_of(const dnnl_graph_logical_tensor_t& t);

} // namespace maskwise::bench
