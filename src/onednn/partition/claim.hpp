#pragma once

#include "fusion/block.hpp"
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
    bool real_supports = false; // oneDNN could run it, too
};

// Operators with a block around a Select. Where there is none, oneDNN runs them all.
struct row_region {
    graph_settings settings;
    op_list records;            // in topological order
    std::vector<graph::op> ops; // the same, translated
    std::vector<std::size_t> output_ids;
    std::optional<fusion::block> block; // with attention where that is the whole region
};

// The records of these operators, which are among `all`.
inline op_list records_of(const op_list& all, const std::vector<graph::op>& ops) {
    op_list records;
    for (const auto& op : ops) records.push_back(find_op(all, op.id));
    return records;
}

// Partitions of one operator that the client gets as one, and the answers to its questions about
// it. Rows run them, or, where those cannot, oneDNN.
struct merged_group {
    row_region region;
    std::string names;               // of the operators, for verbose lines
    std::vector<std::size_t> op_ids; // in topological order; the handle is the last's
    std::vector<abi::logical_tensor> inputs, outputs; // as given at add_op, slot by slot
};

// A partition that Maskwise compiles. The client sees the claim of a Select and of a merged group:
// the partition is supported, and oneDNN does not run it. The claim of a region is silent: where
// the region cannot be compiled, oneDNN compiles the partition as if nothing had been claimed.
struct partition_claim {
    partition_facts facts;
    std::variant<select_claim, std::shared_ptr<const merged_group>, row_region> form;

    bool is_visible() const { return !std::holds_alternative<row_region>(form); }
};

} // namespace maskwise::onednn
