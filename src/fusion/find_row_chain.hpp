#pragma once

#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Finds the chain around a partition's Select or, without a Select, around its SoftMax. `ops` are
// in topological order; `output_ids` are the partition's output ports. If the search fails, returns
// nullopt and sets `reason`: for example, two Selects, scores with two consumers, or a SoftMax that
// is not along the last axis.
std::optional<row_chain> find_row_chain(const std::vector<op>& ops,
                                        const std::vector<std::size_t>& output_ids,
                                        std::string& reason);

// A chain of operators that are single-operator partitions in oneDNN and can become one partition.
struct merged_chain {
    row_chain chain;
    std::vector<op> ops; // in topological order; the last produces the result
};

// The chains of a graph that have a Select and a SoftMax. Each operator is in at most one chain.
// `stands_alone(id)` tells whether a chain may include the operator with this id. The chain passes
// through an input of a Select or an element-wise operator only if the input has the shape of the
// operator's output. This shape must be known. The time is linear in the size of the graph.
std::vector<merged_chain> find_row_chains(std::span<const op> graph, const op_filter& stands_alone);

} // namespace maskwise::fusion
