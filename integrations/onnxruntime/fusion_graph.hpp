#pragma once

#include "model_graph.hpp"

#include "fusion/host_policy.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::ort {

// The operators of a graph that may be fused, in the words of src/graph: a value's id is its
// address, an operator's id its place here.
struct fusion_ops {
    // Of the nodes that no provider has.
    explicit fusion_ops(const model_graph& from);

    std::vector<graph::op> all;
    // What each stands for: a SoftMax that makes 0 of NaN has three nodes.
    std::vector<std::vector<const node*>> nodes;
};

inline const value& value_of(std::size_t id) {
    return *reinterpret_cast<const value*>(id);
}

class fusion_rules : public fusion::host_policy {
public:
    explicit fusion_rules(const fusion_ops& ops) : host_policy(graph::graph_index(ops.all)) {}

    bool leaves(std::size_t value) const override;
};

} // namespace maskwise::ort
