#pragma once

#include "fusion/host_rules.hpp"

#include <openvino/core/node.hpp>
#include <openvino/op/scaled_dot_product_attention.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace maskwise::openvino {

// The inputs to follow from a node to one of the values that lead to it, also in a clone; or a
// number that no node makes.
using source = std::variant<std::vector<std::size_t>, float>;
using node_set = std::set<const ov::Node*>;

// Of opset1 or opset8.
bool is_softmax(const ov::Node& node);

// A node and what leads to it through values that have one reader, in the words of src/graph. An id
// is an address: of a tensor, a node, or a byte of the end where neither is there.
class model_ops {
public:
    // `end` is a MatMul, a Softmax or a ScaledDotProductAttention, which is several operators here.
    // `replaced`, which `end` stands for and somebody may still hold, counts as no reader.
    model_ops(const ov::Node& end, const ov::Node* replaced);

    const std::vector<graph::op>& all() const { return ops_; } // in topological order
    // The nodes that an operator stands for.
    const node_set& nodes_of(std::size_t op) const { return nodes_.at(op); }
    const source& source_of(std::size_t value) const { return sources_.at(value); }
    bool leaves(std::size_t value) const { return shared_.contains(value); }

private:
    using path = std::vector<std::size_t>;

    template <class Node>
    graph::logical_tensor describe(const ov::Output<Node>& value);
    graph::logical_tensor read(const ov::Node& node, std::size_t input, const path& way);
    graph::logical_tensor number(float value);
    graph::logical_tensor like(const graph::logical_tensor& other);
    void add(graph::op op, node_set stands_for);
    void add_node(const ov::Node& node, graph::op_kind kind, const path& way);
    void add_zeros_of_nan(const ov::Node& select, const path& way);
    void add_attention(const ov::op::v13::ScaledDotProductAttention& node);
    graph::logical_tensor add_own(graph::op_kind kind, std::vector<graph::logical_tensor> inputs,
                                  std::optional<graph::logical_tensor> output = {});
    void add_maker(const ov::Output<ov::Node>& value, const path& way);
    template <class Node>
    std::size_t count_readers(const ov::Output<Node>& value) const;
    std::size_t own_id() { return reinterpret_cast<std::size_t>(end_) + ++own_ids_; }

    const ov::Node* end_;
    const ov::Node* replaced_;
    std::size_t own_ids_ = 0;
    std::vector<graph::op> ops_;
    std::map<std::size_t, node_set> nodes_;
    std::map<std::size_t, source> sources_;
    std::set<std::size_t> shared_;
};

class model_rules : public fusion::host_rules {
public:
    explicit model_rules(const model_ops& from)
        : host_rules(graph::graph_index(from.all())), from_(from) {}

    bool leaves(std::size_t value) const override { return from_.leaves(value); }

private:
    const model_ops& from_;
};

} // namespace maskwise::openvino
