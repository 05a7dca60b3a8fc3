#pragma once

#include "graph_facts.hpp"

#include "fusion/chain_rules.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace maskwise::ort {

// The operators of a graph that may be fused, in the words of src/graph: a value's id is the
// address of its value_info, an operator's id its place here.
class fusion_ops {
public:
    using node_filter = std::function<bool(const abi::node*)>;

    fusion_ops(const runtime& with, const abi::graph* graph, const node_filter& is_free);

    const runtime& with() const { return with_; }
    std::span<const graph::op> all() const { return ops_; }
    const graph::op& operator[](std::size_t id) const { return ops_[id]; }
    // What an operator stands for: a SoftMax that makes 0 of NaN has three nodes.
    std::span<const abi::node* const> nodes(std::size_t id) const { return nodes_[id]; }

private:
    void add(graph::op op, std::vector<const abi::node*> nodes);

    const runtime& with_;
    std::vector<graph::op> ops_;
    std::vector<std::vector<const abi::node*>> nodes_;
};

inline const abi::value_info* value_of(std::size_t id) {
    return reinterpret_cast<const abi::value_info*>(id);
}

// Chains among them: values between have one reader and do not leave the graph. The kernels
// broadcast, so any input of an operator may be the row; it is the one that looks like scores.
class fusion_rules : public fusion::chain_rules {
public:
    explicit fusion_rules(const fusion_ops& ops)
        : chain_rules(graph::graph_index(ops.all())), with_(ops.with()) {}

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

    const runtime& with_;
    std::set<std::size_t> taken_;
};

} // namespace maskwise::ort
