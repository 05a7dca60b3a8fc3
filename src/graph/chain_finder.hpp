#pragma once

#include "graph/row_chain.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace maskwise::graph {

// Why there is no chain; caught where one is looked for.
struct no_chain {
    std::string reason;
};

// Whether the operator works along this dimension of its first input, counted from the end.
bool is_axis(const op& op, int from_end);

// Grows a chain of rows around a Select: in one partition of oneDNN's, or in a graph among
// operators that are partitions by themselves. In a partition the row is what is made there, and
// operands come from outside. In a graph the row is what has the result's shape, and all may come
// from outside.
class chain_finder {
public:
    chain_finder(std::span<const op> partition, const std::vector<std::size_t>& output_ids);
    chain_finder(std::span<const op> graph, const std::function<bool(std::size_t)>& stands_alone);

    // Throws no_chain.
    row_chain find(const op& select);
    std::vector<const op*> ops_of(const row_chain& chain) const;
    bool is_closed(const row_chain& chain) const;

private:
    void add_ops(std::span<const op> ops);
    bool is_partition() const { return stands_alone_ == nullptr; }
    bool may_take(const op& each) const { return is_partition() || (*stands_alone_)(each.id); }
    const op* producer(std::size_t id) const;
    const op* only_user(std::size_t id) const;
    bool is_private(std::size_t id, const op& user) const { return only_user(id) == &user; }
    bool is_output(std::size_t id) const;
    bool is_used(std::size_t id) const { return is_output(id) || users_.contains(id); }
    bool is_made_beside(std::size_t id) const { return is_partition() && producer(id) != nullptr; }
    std::size_t row_of(const op& user, std::size_t a, std::size_t b) const;
    int add_operand(const logical_tensor& tensor);
    void take_select(const op& select);
    bool try_causal_mask(const op& select, row_operator how);
    void take_causal_mask(const op& select);
    void take_boundary(const logical_tensor& row_index, const logical_tensor& scores);
    void add_rounding(const op& user);
    bool is_full() const;
    void grow_up();
    void grow_down();
    bool take_above(const op& maker);
    bool take_below(const op& user);
    bool take_elementwise(const op& user);
    bool take_soft_max(const op& user);

    const std::vector<std::size_t>* output_ids_ = nullptr;           // of a partition
    const std::function<bool(std::size_t)>* stands_alone_ = nullptr; // of a graph
    std::map<std::size_t, const op*> producers_;
    std::map<std::size_t, std::vector<const op*>> users_;
    row_chain chain_;
};

} // namespace maskwise::graph
