#pragma once

#include "fusion/block.hpp"
#include "fusion/gradients_chain.hpp"
#include "graph/op.hpp"
#include "onednn/record/graph_record.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace maskwise::onednn {

// A Select that is a partition by itself.
struct select_claim {
    graph::op select;
    bool real_supports = false; // whether oneDNN could run it, too
};

// Operators with a block around a Select. Without a block, oneDNN runs all of them.
struct row_region {
    graph_settings settings;
    op_list records;            // in topological order
    std::vector<graph::op> ops; // the same, translated
    std::vector<std::size_t> output_ids;
    std::optional<fusion::block> block; // has attention only if that is the whole region
    std::optional<fusion::gradients_chain> gradients = {}; // of the whole region
};

// The records from `all` of these operators.
inline op_list records_of(const op_list& all, const std::vector<graph::op>& ops) {
    op_list records;
    for (const auto& op : ops) records.push_back(find_op(all, op.id));
    return records;
}

// Single-operator partitions that the client gets as one partition, with the answers to its
// queries. Runs as rows, or in oneDNN if rows cannot run it.
struct merged_group {
    row_region region;
    std::string names;               // of the operators, for verbose lines
    std::vector<std::size_t> op_ids; // topological order; the last op's handle is the group's
    std::vector<abi::logical_tensor> inputs, outputs; // as given to add_op, by slot
};

// A partition that Maskwise compiles. The claim of a Select and of a merged group is visible: the
// partition is supported, and oneDNN does not run it. The claim of a region is silent: if Maskwise
// cannot compile the region, oneDNN compiles the partition as if Maskwise had claimed nothing.
struct partition_claim {
    partition_facts facts;
    std::variant<select_claim, std::shared_ptr<const merged_group>, row_region> form;

    bool is_visible() const { return !std::holds_alternative<row_region>(form); }
};

} // namespace maskwise::onednn
