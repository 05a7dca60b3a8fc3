#pragma once

#include "fusion/host_policy.hpp"

#include <openvino/core/node.hpp>
#include <openvino/op/scaled_dot_product_attention.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace maskwise::openvino {

// What reads a value, since the node that makes it may be replaced. Without a reader it is a number
// that no node makes.
struct source {
    ov::Node* reader = nullptr;
    std::size_t input = 0;
    float number = 0;
};
using node_set = std::set<const ov::Node*>;

// Of opset1 or opset8.
bool is_softmax(const ov::Node& node);
bool has_scale(const ov::op::v13::ScaledDotProductAttention& node);

// A node, what leads to it through values that have one reader, and the Transposes of its result,
// in the words of src/graph. An id is an address: of a tensor, a node, or a byte of the end where
// neither is there.
class model_ops {
public:
    // `end` is a MatMul, a Softmax or a ScaledDotProductAttention, which is several operators here,
    // without its default scale and its causal boundary. Nodes of `claimed` are left out.
    model_ops(ov::Node& end, const node_set& claimed);

    const std::vector<graph::op>& all() const { return ops_; } // in topological order
    // The nodes that an operator stands for.
    const node_set& nodes_of(std::size_t op) const { return nodes_.at(op); }
    const source& source_of(std::size_t value) const { return sources_.at(value); }
    // `end` or a Transpose of its result, whichever makes the value; else null.
    std::shared_ptr<ov::Node> result_node(std::size_t value) const;
    bool leaves(std::size_t value) const { return shared_.contains(value); }

private:
    graph::logical_tensor describe(const ov::Output<ov::Node>& value);
    graph::logical_tensor read(ov::Node& node, std::size_t input, std::size_t depth);
    graph::logical_tensor number(float value);
    graph::logical_tensor like(const graph::logical_tensor& other);
    void add(graph::op op, node_set stands_for);
    void add_node(ov::Node& node, graph::op_kind kind, std::size_t depth);
    void add_zeros_of_nan(ov::Node& select, std::size_t depth);
    void add_attention(ov::op::v13::ScaledDotProductAttention& node);
    graph::logical_tensor add_own(graph::op_kind kind, std::vector<graph::logical_tensor> inputs,
                                  std::optional<graph::logical_tensor> output = {});
    void add_maker(const ov::Output<ov::Node>& value, std::size_t depth);
    void add_result(ov::Node& node);
    std::size_t own_id() { return reinterpret_cast<std::size_t>(end_) + ++own_ids_; }

    const ov::Node* end_;
    const node_set& claimed_;
    std::size_t own_ids_ = 0;
    std::vector<graph::op> ops_;
    std::map<std::size_t, node_set> nodes_;
    std::map<std::size_t, source> sources_;
    std::map<std::size_t, std::shared_ptr<ov::Node>> results_;
    std::set<std::size_t> shared_;
};

class model_rules : public fusion::host_policy {
public:
    explicit model_rules(const model_ops& from)
        : host_policy(graph::graph_index(from.all())), from_(from) {}

    bool leaves(std::size_t value) const override { return from_.leaves(value); }

private:
    const model_ops& from_;
};

} // namespace maskwise::openvino
