#pragma once

#include "fusion/words.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Thrown while a chain is searched, caught by find_row_chain and find_row_chains.
struct no_chain {
    std::string reason;
};

// How a chain is matched inside a partition, or across single operators: which input is the row,
// which values may be operands, and where the chain ends.
class match_policy {
public:
    virtual ~match_policy() = default;

    const graph_index& values() const { return values_; }
    const op* maker(std::size_t value) const { return values_.maker(value); }
    // The value's only consumer; null if there are several, or the value leaves.
    const op* only_reader(std::size_t value) const {
        return leaves(value) ? nullptr : values_.only_reader(value);
    }

    virtual bool may_take(const op&) const { return true; }
    // Whether the value is needed outside, apart from its readers here.
    virtual bool leaves(std::size_t value) const = 0;
    // Which of two inputs is the row; nothing if both may be.
    virtual std::optional<std::size_t> row_of(const op& user, std::size_t a,
                                              std::size_t b) const = 0;
    virtual bool may_begin_with(std::size_t) const { return true; }
    virtual bool may_be_operand(std::size_t) const { return true; }
    // Whether a TypeCast may be the first operator: a part that ends in one rounds otherwise.
    virtual bool may_begin_with_cast() const { return false; }
    // Whether an operator may take SoftMax's result of that type, to which the chain does not
    // round.
    virtual bool may_follow_soft_max(data_type type) const = 0;
    // Whether numbers that scale query and key may scale the scores instead, which rounds
    // otherwise.
    virtual bool may_scale_scores() const { return false; }

protected:
    explicit match_policy(graph_index values) : values_(std::move(values)) {}

private:
    graph_index values_;
};

// Inside one partition of oneDNN's the row is the input made there, and operands come from outside.
// Rows are run in place, so nothing else reads the first value.
class partition_policy : public match_policy {
public:
    partition_policy(std::span<const op> partition, const std::vector<std::size_t>& output_ids)
        : match_policy(graph_index(partition)), output_ids_(output_ids) {}

    bool leaves(std::size_t value) const override;
    std::optional<std::size_t> row_of(const op& user, std::size_t a, std::size_t b) const override;
    bool may_begin_with(std::size_t value) const override { return only_reader(value) != nullptr; }
    bool may_be_operand(std::size_t value) const override { return maker(value) == nullptr; }
    bool may_follow_soft_max(data_type) const override { return true; }

private:
    const std::vector<std::size_t>& output_ids_;
};

// Among operators that are partitions by themselves, everything may come from outside. The row is
// the input with the result's shape. If both have it, the row is the one that an operator of the
// graph makes, or else the first. A value between two operators has its tensor's type.
class graph_policy : public match_policy {
public:
    graph_policy(std::span<const op> graph, const op_filter& stands_alone)
        : match_policy(graph_index(graph, stands_alone)), stands_alone_(stands_alone) {}

    // Each operator is in one chain at most.
    void mark_taken(std::span<const std::size_t> op_ids) {
        taken_.insert(op_ids.begin(), op_ids.end());
    }

    bool may_take(const op& op) const override {
        return !taken_.contains(op.id) && stands_alone_(op.id);
    }
    // A value without a user leaves a graph.
    bool leaves(std::size_t value) const override { return values().users(value).empty(); }
    std::optional<std::size_t> row_of(const op& user, std::size_t a, std::size_t b) const override;
    bool may_begin_with_cast() const override { return true; }
    bool may_follow_soft_max(data_type type) const override;

private:
    const op_filter& stands_alone_;
    std::set<std::size_t> taken_;
};

} // namespace maskwise::fusion
