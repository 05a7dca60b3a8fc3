#pragma once

#include "graph/logical_tensor.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::graph {

// The operators that the matcher distinguishes. `other` is every operator that Maskwise never runs.
enum class op_kind : std::uint8_t {
#define MASKWISE_ROW_BINARY(name, ...) name,
#define MASKWISE_ROW_UNARY(name, ...) name,
#include "kernel/rows/operators.inc"
    select,
    greater_equal,
    type_cast,
    quantize,
    soft_max,
    gen_index,
    mat_mul,
    static_transpose,
    reorder,
    exp,
    reduce_sum,
    other
};

// One operator as the client added it to the graph.
struct op {
    std::size_t id = 0;
    op_kind kind = op_kind::other;
    std::string name;
    std::optional<std::string> auto_broadcast;
    std::optional<std::int64_t> axis;
    std::optional<std::string> mode; // of SoftMax; only Maskwise has nan_as_zero
    // LeakyReLU: alpha; Quantize: scale and zero point, unset if per channel.
    std::optional<std::array<float, 2>> constants;
    std::vector<logical_tensor> inputs;
    std::vector<logical_tensor> outputs;
    bool transpose_a = false, transpose_b = false; // of MatMul
    std::vector<std::int64_t> order = {};          // of StaticTranspose
    std::vector<std::int64_t> axes = {};           // of ReduceSum
    bool keeps_dims = false;                       // of ReduceSum
};

// Whether the operator's axis is this dimension of its first input, counted from the end.
inline bool works_along(const op& op, int from_end) {
    const int rank = op.inputs[0].extents.rank();
    return op.axis && (*op.axis == -from_end || *op.axis == rank - from_end);
}

} // namespace maskwise::graph
