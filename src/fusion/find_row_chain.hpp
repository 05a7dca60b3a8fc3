#pragma once

#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Finds the chain in a partition given by its operators in topological order and the ids of its
// output ports. Nothing is returned, and `reason` says why, where the partition has no such chain
// or comes only near one: two Selects, a value used twice, SoftMax along another axis, a mask made
// of other operators.
std::optional<row_chain> find_row_chain(const std::vector<op>& ops,
                                        const std::vector<std::size_t>& output_ids,
                                        std::string& reason);

// A chain of operators that are partitions of their own so far.
struct merged_chain {
    row_chain chain;
    std::vector<op> ops; // in topological order; the last makes the result
};

// The chains of a Select and a SoftMax in a graph. Each operator is in one chain at most;
// `stands_alone` tells by id which operators may be taken. Shapes must be known where they decide
// which input is the row. Linear in the size of the graph.
std::vector<merged_chain> find_row_chains(std::span<const op> graph, const op_filter& stands_alone);

} // namespace maskwise::fusion
