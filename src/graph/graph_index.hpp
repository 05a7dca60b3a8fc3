#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace maskwise::graph {

// Tells by id whether the operator may be taken.
using op_filter = std::function<bool(std::size_t)>;

// The makers and the users of the values of a graph, by tensor. Refers to the operators.
class graph_index {
public:
    // All operators are users; where there is a filter, the others are no makers.
    explicit graph_index(std::span<const op> ops, const op_filter& may_make = {});

    // Null where the value comes from outside.
    const op* maker(std::size_t value) const;
    // Slot by slot: an operator that uses the value twice is there twice.
    std::span<const op* const> users(std::size_t value) const;
    // The operator that alone uses the value, once, or null.
    const op* only_user(std::size_t value) const;
    // The same where GenIndex, which reads a tensor's shape, is no user.
    const op* only_reader(std::size_t value) const;

private:
    std::map<std::size_t, const op*> makers_;
    std::map<std::size_t, std::vector<const op*>> users_;
};

} // namespace maskwise::graph
