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

// Whether Maskwise can compile a partition of this operator alone for every shape: the client sees
// a claim (is_supported), so it must hold. If it returns false, `reason` says why.
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

// Compiles `select` for these tensors. The first tensor with an operand's id counts; other tensors
// are ignored. An `any` output gets the dense layout of the operand with dst's shape, so that most
// of the traffic is contiguous. Throws argument_error (missing id, unknown input shape, unreadable
// layout, types outside the schema) and shape_error (broadcast, dst of another shape).
compiled_select compile_select(const op& select, std::span<const logical_tensor> inputs,
                               std::span<const logical_tensor> outputs);

// Whether the types at compile are types of the schema. oneDNN checks types at add_op only and
// computes some other mixtures by accident, so the caller leaves such a compile to oneDNN if it
// can.
bool types_fit_schema(const op& select, std::span<const logical_tensor> inputs,
                      std::span<const logical_tensor> outputs);

} // namespace maskwise::graph
