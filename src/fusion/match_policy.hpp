#pragma once

#include "fusion/words.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Thrown during the search for a chain, with the reason why no chain exists.
struct no_chain {
    std::string reason;
};

// Tells the matcher which input of an operator is the row, which values may be operands, and where
// a chain ends. The row is the input through which the chain passes.
class match_policy {
public:
    virtual ~match_policy() = default;

    const graph_index& values() const { return values_; }
    const op* maker(std::size_t value) const { return values_.maker(value); }
    // The value's only consumer. Null if the value is an output, or has no or several consumers.
    const op* only_reader(std::size_t value) const {
        return leaves(value) ? nullptr : values_.only_reader(value);
    }

    // Keeps the operators `op_ids` out of later chains and blocks.
    void mark_taken(std::span<const std::size_t> op_ids) {
        taken_.insert(op_ids.begin(), op_ids.end());
    }
    virtual bool may_take(const op& op) const { return !taken_.contains(op.id); }
    // Whether the value is an output of the graph or partition.
    virtual bool leaves(std::size_t value) const = 0;
    // Returns input a or b, whichever is the row; nullopt if the policy cannot tell.
    virtual std::optional<std::size_t> row_of(const op& user, std::size_t a,
                                              std::size_t b) const = 0;
    virtual bool may_begin_with(std::size_t) const { return true; }
    virtual bool may_be_operand(std::size_t) const { return true; }
    // Whether a chain may begin with a TypeCast. Else the TypeCast stays outside, before the chain.
    virtual bool may_begin_with_cast() const { return false; }
    // Whether an operator may follow a SoftMax whose result has this type. The chain does not round
    // the SoftMax's result to this type before the operator.
    virtual bool may_follow_soft_max(data_type type) const = 0;
    // Whether scale factors of query and key may scale the scores instead, which changes rounding.
    virtual bool may_scale_scores() const { return false; }

protected:
    explicit match_policy(graph_index values) : values_(std::move(values)) {}

private:
    graph_index values_;
    std::set<std::size_t> taken_;
};

// In a oneDNN partition, an operator's row is the input that another operator of the partition
// computes. Its operands are inputs of the partition. A chain runs in place, so only the chain may
// read the scores.
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

// For graphs of single-operator partitions. Any value may be an operand. The row is the input with
// the result's shape. If both inputs have this shape, the row is the first input that an operator
// of the graph computes. If no operator computes either, the row is the first input. A value
// between two operators is rounded to its tensor's type.
class graph_policy : public match_policy {
public:
    graph_policy(std::span<const op> graph, const op_filter& stands_alone)
        : match_policy(graph_index(graph, stands_alone)), stands_alone_(stands_alone) {}

    bool may_take(const op& op) const override {
        return match_policy::may_take(op) && stands_alone_(op.id);
    }
    // A value without a consumer is an output of the graph.
    bool leaves(std::size_t value) const override { return values().users(value).empty(); }
    std::optional<std::size_t> row_of(const op& user, std::size_t a, std::size_t b) const override;
    bool may_begin_with_cast() const override { return true; }
    bool may_follow_soft_max(data_type type) const override;

private:
    const op_filter& stands_alone_;
};

} // namespace maskwise::fusion
