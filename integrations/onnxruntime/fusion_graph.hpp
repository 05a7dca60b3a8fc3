#pragma once

#include "model_graph.hpp"

#include "fusion/chain_rules.hpp"

#include <cstddef>
#include <span>
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

// Chains among them: values between have one reader and do not leave the graph. The kernels
// broadcast, so any input of an operator may be the row; it is the one that looks like scores.
class fusion_rules : public fusion::chain_rules {
public:
    explicit fusion_rules(const fusion_ops& ops) : chain_rules(graph::graph_index(ops.all)) {}

    void mark_taken(std::span<const std::size_t> op_ids) {
        taken_.insert(op_ids.begin(), op_ids.end());
    }

    bool may_take(const graph::op& op) const override { return !taken_.contains(op.id); }
    bool leaves(std::size_t value) const override;
    std::optional<std::size_t> row_of(const graph::op& user, std::size_t a,
                                      std::size_t b) const override;
    bool may_follow_soft_max(data_type) const override { return false; }
    bool may_scale_scores() const override { return true; }

private:
    bool comes_from_product(std::size_t value, int depth) const;

    std::set<std::size_t> taken_;
};

} // namespace maskwise::ort
