#pragma once

#include "graph/logical_tensor.hpp"
#include "graph/op.hpp"
#include "plan/select_plan.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace maskwise::graph {

// Whether Maskwise can compile a partition of this operator alone for every shape. The client sees
// the answer (is_supported), so compile must not refuse later. If false, `reason` says why.
bool can_claim(const op& candidate, std::string& reason);

// A single Select compiled for the tensors of one compile call. Immutable; any number of threads
// may execute it at once.
struct compiled_select {
    // Index of each operand in the lists of compile. Execution passes its arguments in the same
    // order, which may differ from the order of the partition's ports.
    struct positions {
        std::size_t cond, src_0, src_1, dst;
    };

    positions ports{};
    logical_tensor dst; // with its shape and strides
    std::shared_ptr<const select_plan> plan;
    bool src_0_may_be_dst = false; // same layout, not constant, not empty
    bool is_empty = false;         // dst has no elements: pointers may be null
};

// Compiles `select` for these tensors. Each operand is the first tensor with its id; other tensors
// are ignored. A dst with layout `any` becomes dense, in the dimension order of the first of src_0,
// src_1 and cond that has dst's shape. Throws argument_error (missing id, unknown input shape,
// unreadable layout, types outside the schema) and shape_error (broadcast, dst of another shape).
compiled_select compile_select(const op& select, std::span<const logical_tensor> inputs,
                               std::span<const logical_tensor> outputs);

// Whether the types at compile fit the schema. oneDNN checks types only at add_op, and computes
// some illegal combinations by accident. If the types do not fit, the caller leaves the compile to
// oneDNN if possible. Throws argument_error if an operand is missing.
bool types_fit_schema(const op& select, std::span<const logical_tensor> inputs,
                      std::span<const logical_tensor> outputs);

} // namespace maskwise::graph
