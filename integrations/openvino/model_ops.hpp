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

// Locates a value by its consumer, because its producer may be replaced. If `reader` is null, the
// value is `number`.
struct value_source {
    ov::Node* reader = nullptr;
    std::size_t input = 0;
    float number = 0;
};
using node_set = std::set<const ov::Node*>;

// Softmax of opset1 or opset8.
bool is_softmax(const ov::Node& node);
bool has_scale(const ov::op::v13::ScaledDotProductAttention& node);

// Presents nodes as operators of src/graph: `end`, the Transposes of its result, and the nodes that
// only `end` needs. An id is the address of the value's tensor or of the node, or an address inside
// `end` if `end` becomes several operators.
class model_ops {
public:
    // `end` is a MatMul, a Softmax or a ScaledDotProductAttention. A ScaledDotProductAttention
    // becomes several operators, without the default scale and the causal boundary. If it has a
    // sink, it becomes none. Nodes in `claimed` are omitted.
    model_ops(ov::Node& end, const node_set& claimed);

    const std::vector<graph::op>& operators() const { return ops_; } // in topological order
    const node_set& nodes_of(std::size_t op) const { return nodes_.at(op); }
    const value_source& source_of(std::size_t value) const { return sources_.at(value); }
    // Returns the value's producer if the producer is `end` or a Transpose of `end`'s result, else
    // null.
    std::shared_ptr<ov::Node> result_node(std::size_t value) const;
    bool leaves(std::size_t value) const { return shared_.contains(value); }

private:
    graph::logical_tensor describe(const ov::Output<ov::Node>& value);
    graph::logical_tensor read(ov::Node& node, std::size_t input, std::size_t depth);
    graph::logical_tensor number(float value);
    graph::logical_tensor like(const graph::logical_tensor& other);
    void add(graph::op op, node_set nodes);
    void add_node(ov::Node& node, graph::op_kind kind, std::size_t depth);
    void add_nan_to_zero(ov::Node& select, std::size_t depth);
    void add_attention(ov::op::v13::ScaledDotProductAttention& node);
    graph::logical_tensor add_synthetic(graph::op_kind kind,
                                        std::vector<graph::logical_tensor> inputs,
                                        std::optional<graph::logical_tensor> output = {});
    void add_producer(const ov::Output<ov::Node>& value, std::size_t depth);
    void add_result(ov::Node& node);
    std::size_t synthetic_id() { return reinterpret_cast<std::size_t>(end_) + ++synthetic_ids_; }

    const ov::Node* end_;
    const node_set& claimed_;
    std::size_t synthetic_ids_ = 0;
    std::vector<graph::op> ops_;
    std::map<std::size_t, node_set> nodes_;
    std::map<std::size_t, value_source> sources_;
    std::map<std::size_t, std::shared_ptr<ov::Node>> results_;
    std::set<std::size_t> shared_;
};

class model_match_policy : public fusion::host_policy {
public:
    explicit model_match_policy(const model_ops& ops)
        : host_policy(graph::graph_index(ops.operators())), model_(ops) {}

    bool leaves(std::size_t value) const override { return model_.leaves(value); }

private:
    const model_ops& model_;
};

} // namespace maskwise::openvino
