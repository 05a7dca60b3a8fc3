#pragma once

#include "graph/op.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace maskwise::graph {

// Whether a chain may include the operator with this id.
using op_filter = std::function<bool(std::size_t)>;

// The producer ("maker") and the consumers ("users") of each tensor of a graph. Holds pointers into
// `ops`, so `ops` must outlive the index.
class graph_index {
public:
    // All operators count as users. With a filter, only operators that pass the filter count as
    // makers.
    explicit graph_index(std::span<const op> ops, const op_filter& may_make = {});

    // The operator that outputs the value. Null if the value is an input of the graph, or if the
    // filter rejects the operator.
    const op* maker(std::size_t value) const;
    // One entry per input slot: an operator that uses the value twice is listed twice.
    std::span<const op* const> users(std::size_t value) const;
    // The operator with the only use of the value; null if there are several uses or none.
    const op* only_user(std::size_t value) const;
    // Like only_user, but ignores GenIndex, which reads only a tensor's shape.
    const op* only_reader(std::size_t value) const;

private:
    std::map<std::size_t, const op*> makers_;
    std::map<std::size_t, std::vector<const op*>> users_;
};

} // namespace maskwise::graph
