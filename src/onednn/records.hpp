#pragma once

#include "graph/compiled_select.hpp"
#include "graph/op.hpp"
#include "onednn/abi.hpp"
#include "onednn/handle_map.hpp"
#include "onednn/side_table.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace maskwise::onednn {

using attribute = std::variant<std::vector<float>, std::vector<std::int64_t>, bool, std::string>;

// An operator as the client described it, in oneDNN's own numbers.
struct op_record {
    std::size_t id = 0;
    int kind = 0;
    std::string name;
    std::map<int, attribute> attributes;
    std::vector<abi::logical_tensor> inputs;
    std::vector<abi::logical_tensor> outputs;
};

// The operator while the client still holds and may change it. add_op shares the current state; the
// next change copies it first.
struct op_builder {
    std::shared_ptr<op_record> current;

    op_record& writable() {
        if (current.use_count() > 1) current = std::make_shared<op_record>(*current);
        return *current;
    }
};

// oneDNN takes the first operator of an id and ignores the others, so every id is remembered. The
// record is null for the kinds that no pattern looks at: a graph of those costs next to nothing.
struct added_op {
    std::size_t id;
    std::shared_ptr<const op_record> record;
};

struct graph_record {
    int engine_kind = 0;
    int fpmath_mode = 0;
    bool fpmath_applies_to_int = false;
    bool has_select = false;
    std::vector<added_op> ops; // in order of add_op
};

// A partition that is Maskwise's: a Select alone.
struct partition_record {
    std::size_t id = 0;
    bool real_supports = false; // oneDNN could run it, too
    int fpmath_mode = 0;
    bool fpmath_applies_to_int = false;
    graph::op select;
};

// What execute, query and verbose need of a compiled partition that is Maskwise's.
struct compiled_record {
    std::shared_ptr<const partition_record> partition;
    graph::compiled_select select;
    std::vector<abi::logical_tensor> inputs;  // as given to compile
    std::vector<abi::logical_tensor> outputs; // dst with shape and strides filled in
    abi::inplace_pair inplace{};
};

// A host scalar's value is unreachable in the real library once the tensor exists.
struct tensor_record {
    abi::logical_tensor logical_tensor{};
    std::optional<std::array<std::byte, 8>> scalar;
};

struct side_tables {
    handle_map<op_builder> ops;
    handle_map<graph_record> graphs;
    side_table<const partition_record> partitions;
    side_table<const tensor_record> tensors;
    handle_map<compiled_record> compiled;
};

// Never destroyed: exit handlers of the client still destroy handles.
side_tables& tables();

} // namespace maskwise::onednn
