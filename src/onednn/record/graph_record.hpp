#pragma once

#include "onednn/library/abi.hpp"
#include "onednn/record/op_record.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace maskwise::onednn {

// How the client set a graph up. Every graph that Maskwise cuts from it gets the same.
struct graph_settings {
    int engine_kind = abi::engine_cpu;
    int fpmath_mode = 0;
    bool fpmath_applies_to_int = false;
};

struct merged_group;
using op_list = std::vector<std::shared_ptr<const op_record>>;

// What verbose lines say of a partition.
struct partition_facts {
    std::size_t id = 0;
    std::string names; // of the operators, as oneDNN joins them
    graph_settings settings;
};

// A partition that the client gets: one of the real library's, by its place in that library's list.
struct listed_partition {
    std::size_t index;
    std::shared_ptr<const merged_group> group; // null where it is as oneDNN made it
};

struct graph_record {
    graph_settings settings;
    bool has_select = false;
    op_list ops;                          // in order of add_op, ids may repeat
    std::vector<listed_partition> listed; // by the last filter; empty where nothing is merged
};

// The first tensor of that id, or null.
const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors, std::size_t id);

// The first operator of that id, which is the one that oneDNN took; null where there is none.
std::shared_ptr<const op_record> find_op(const op_list& ops, std::size_t id);

// Names as oneDNN joins them in the lines of a partition.
std::string joined_names(const op_list& ops);

} // namespace maskwise::onednn
