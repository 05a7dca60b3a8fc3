#pragma once

#include "transcript.hpp"

#include <string>
#include <vector>

namespace maskwise::contract {

inline constexpr std::size_t cond_id = 0, src_0_id = 1, src_1_id = 2, dst_id = 3;

std::uint64_t hash_of(const std::vector<std::uint8_t>& bytes);

// A Select as a client passes it to add_op.
struct select_case {
    logical_tensor cond, src_0, src_1, dst;
    std::string auto_broadcast; // empty: attribute not set
};
struct named_case {
    const char* name;
    select_case problem;
};

// A Select of dense tensors {2, 3, 4}, f32 except cond. `tensor` replaces the tensor with the same
// id.
select_case with_tensor(const logical_tensor& tensor);
logical_tensor with_layout(logical_tensor tensor, dnnl_graph_layout_type_t layout);

// Owns all objects that a client creates for one Select.
class select_graph {
public:
    // Builds the operator and the graph, and notes the statuses of the calls.
    select_graph(const transcript& out, const select_case& problem,
                 dnnl_graph_partition_policy_t policy = dnnl_graph_partition_policy_fusion);

    dnnl_graph_graph_t graph() const { return graph_.get(); }
    dnnl_graph_op_t op() const { return op_.get(); }

    // Finalizes and filters the graph, gets the partitions and notes their number. Returns the
    // first partition, or null if there is none.
    dnnl_graph_partition_t partition();

private:
    const transcript& out_;
    dnnl_graph_partition_policy_t policy_;
    owned<dnnl_graph_op_t> op_;
    owned_graph graph_;
    std::vector<owned_partition> partitions_;
};

// Compiles `partition` with these lists. On success, notes the queried outputs and the in-place
// pairs. Executes on data that depend only on tensor id and position, and notes a hash of dst's
// whole buffer.
void compile_and_execute(const transcript& out, dnnl_graph_partition_t partition,
                         const std::vector<logical_tensor>& inputs,
                         const std::vector<logical_tensor>& outputs);

} // namespace maskwise::contract
