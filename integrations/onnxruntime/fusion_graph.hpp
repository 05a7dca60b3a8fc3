#pragma once

#include "model_graph.hpp"

#include "fusion/host_policy.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::ort {

// The operators of a graph that may be fused, as operators of src/graph. A value's id is its
// address; an operator's id is its index in `operators`.
struct fusion_ops {
    // Reads the nodes that no provider has claimed.
    explicit fusion_ops(const model_graph& model);

    std::vector<graph::op> operators;
    // The nodes of each operator. A SoftMax that turns NaN into 0 has three nodes.
    std::vector<std::vector<const node*>> nodes;
};

inline const value& value_of(std::size_t id) {
    return *reinterpret_cast<const value*>(id);
}

class fusion_match_policy : public fusion::host_policy {
public:
    explicit fusion_match_policy(const fusion_ops& ops)
        : host_policy(graph::graph_index(ops.operators)) {}

    bool leaves(std::size_t value) const override;
};

} // namespace maskwise::ort
