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
    bool real_supports = false; // whether oneDNN supports the partition, too
};

// The operators of a partition. Maskwise runs the operators of `block` (a row chain or attention)
// or of `gradients`. If neither is set, oneDNN runs all operators except Selects.
struct row_region {
    graph_settings settings;
    op_list records;            // in topological order
    std::vector<graph::op> ops; // the records, translated
    std::vector<std::size_t> output_ids;
    std::optional<fusion::block> block; // has attention only if the attention covers the region
    std::optional<fusion::gradients_chain> gradients = {}; // set only if they cover the region
};

inline op_list records_of(const op_list& candidates, const std::vector<graph::op>& ops) {
    op_list records;
    for (const auto& op : ops) records.push_back(find_op(candidates, op.id));
    return records;
}

// Single-operator partitions that Maskwise presents to the client as one partition. The group runs
// as a row chain, or else operator by operator.
struct merged_group {
    row_region region;
    std::string names; // of the operators, for verbose lines
    // In topological order. The last operator's partition represents the group.
    std::vector<std::size_t> op_ids;
    std::vector<abi::logical_tensor> inputs, outputs; // as the client described them
};

// A partition that Maskwise compiles. The claim of a Select or of a merged group is visible: the
// client sees the partition as supported. The claim of a region is silent: if Maskwise cannot
// compile the region, oneDNN compiles the partition.
struct partition_claim {
    partition_facts facts;
    std::variant<select_claim, std::shared_ptr<const merged_group>, row_region> form;

    bool is_visible() const { return !std::holds_alternative<row_region>(form); }
};

} // namespace maskwise::onednn
