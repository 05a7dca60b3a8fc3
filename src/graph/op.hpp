#pragma once

#include "graph/logical_tensor.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::graph {

// The operators that the matcher tells apart. `other` stands for every operator that Maskwise never
// touches.
enum class op_kind : std::uint8_t {
    select,
    add,
    subtract,
    multiply,
    divide,
    soft_max,
    gen_index,
    greater_equal,
    other
};

// One operator as it was when the client added it to the graph.
struct op {
    std::size_t id = 0;
    op_kind kind = op_kind::other;
    std::string name;
    std::optional<std::string> auto_broadcast;
    std::optional<std::int64_t> axis;
    std::optional<std::string> mode; // of SoftMax
    std::vector<logical_tensor> inputs;
    std::vector<logical_tensor> outputs;
};

} // namespace maskwise::graph
