#pragma once

#include "fusion/row_chain.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Finds the chain around a partition's Select or, without one, its SoftMax. `ops` are in
// topological order; `output_ids` are its output ports. Returns nullopt and sets `reason` if the
// partition is not such a chain: two Selects, a value used twice, SoftMax along another axis, a
// mask computed by other operators.
std::optional<row_chain> find_row_chain(const std::vector<op>& ops,
                                        const std::vector<std::size_t>& output_ids,
                                        std::string& reason);

// A chain of operators that are single partitions so far.
struct merged_chain {
    row_chain chain;
    std::vector<op> ops; // in topological order; the last produces the result
};

// The chains with a Select and a SoftMax in a graph. Each operator is in at most one chain.
// `stands_alone` says by id which operators may be taken. If an operator has two possible rows,
// their shapes must be known. Linear in the size of the graph.
std::vector<merged_chain> find_row_chains(std::span<const op> graph, const op_filter& stands_alone);

} // namespace maskwise::fusion
