#pragma once

#include "graph/graph_index.hpp"
#include "plan/row_plan.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maskwise::graph {

// A number that moves the causal boundary: S_kv and S_q of a bottom-right mask, known at execution.
struct boundary_term {
    logical_tensor tensor;
    bool is_subtracted = false;
};

// The chain of row operations around a Select: everything from the value that enters (the scores)
// to the one that leaves. Values between are used by the chain alone.
struct row_chain {
    std::size_t scores = 0; // tensor ids
    std::size_t result = 0;
    std::vector<logical_tensor> operands;
    std::vector<row_step> steps; // their numbers are those of `operands`
    std::optional<row_soft_max> soft_max;
    std::optional<row_quantize> quantize;
    std::vector<boundary_term> boundary;      // of a causal Select
    std::optional<logical_tensor> statistics; // of a SoftMax in training, where somebody uses them
    std::vector<std::size_t> op_ids;          // of every operator the chain stands for

    std::size_t length() const { return steps.size() + (soft_max ? 1 : 0); }
};

// Finds the chain in a partition given by its operators in topological order and the ids of its
// output ports. Nothing is returned, and `reason` says why, where the partition has no such chain
// or comes only near one: two Selects, a value used twice, SoftMax along another axis, a mask made
// of other operators.
std::optional<row_chain> find_row_chain(const std::vector<op>& ops,
                                        const std::vector<std::size_t>& output_ids,
                                        std::string& reason);

// A chain whose operators are partitions of their own so far.
struct merged_chain {
    row_chain chain;
    std::vector<op> ops; // each after those whose values it uses; the last makes the result
};

// The chains in a graph that are worth merging: those with a SoftMax, or with a causal mask. Each
// operator is in one at most; `stands_alone` tells by id which may be taken. Shapes must be known
// where they decide which input is the row. Linear in the size of the graph.
std::vector<merged_chain> find_row_chains(std::span<const op> graph, const op_filter& stands_alone);

} // namespace maskwise::graph
