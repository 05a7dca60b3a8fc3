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

// Whether a partition that consists of this operator alone can be Maskwise's for every shape the
// client may compile it with: a claim is visible (is_supported), so it must hold. On `false`,
// `reason` says why not.
bool can_claim(const op& candidate, std::string& reason);

// A single Select compiled for the tensors of one compile call. Immutable; any number of threads
// may execute it at once.
struct compiled_select {
    // Where each operand stands in the lists given to compile; execution passes its arguments in
    // the same order, whatever the order of the partition's ports.
    struct positions {
        std::size_t cond, src_0, src_1, dst;
    };

    positions at{};
    logical_tensor dst; // with shape and strides filled in
    std::shared_ptr<const select_plan> plan;
    bool src_0_may_be_dst = false; // same descriptor, not constant, not empty
    bool is_empty = false;         // dst has no elements: pointers may be null
};

// Compiles `select` for these tensors, matched by id (first occurrence), extras ignored. An `any`
// output gets the dense layout of the operand that has dst's shape, so that most of the traffic is
// contiguous. Throws argument_error (missing id, unknown input shape, unreadable layout, types
// outside the schema) and shape_error (broadcast, dst of another shape).
compiled_select compile_select(const op& select, std::span<const logical_tensor> inputs,
                               std::span<const logical_tensor> outputs);

// Whether the types given to compile are those of the schema. oneDNN does not look at them again
// and computes some mixtures by accident, so the caller leaves such a compile to oneDNN where it
// can.
bool types_fit_schema(const op& select, std::span<const logical_tensor> inputs,
                      std::span<const logical_tensor> outputs);

} // namespace maskwise::graph
