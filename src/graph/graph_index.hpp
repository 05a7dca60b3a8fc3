#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace maskwise::graph {

// Whether the operator with this id may be taken.
using op_filter = std::function<bool(std::size_t)>;

// The makers and the users of the values of a graph, by tensor. Refers to the operators.
class graph_index {
public:
    // All operators count as users. With a filter, only those that it takes count as makers.
    explicit graph_index(std::span<const op> ops, const op_filter& may_make = {});

    // Null if the value comes from outside.
    const op* maker(std::size_t value) const;
    // One entry per input slot: an operator that uses the value twice is listed twice.
    std::span<const op* const> users(std::size_t value) const;
    // The operator that alone uses the value, once, or null.
    const op* only_user(std::size_t value) const;
    // The same, but GenIndex, which reads only a tensor's shape, does not count as a user.
    const op* only_reader(std::size_t value) const;

private:
    std::map<std::size_t, const op*> makers_;
    std::map<std::size_t, std::vector<const op*>> users_;
};

} // namespace maskwise::graph
