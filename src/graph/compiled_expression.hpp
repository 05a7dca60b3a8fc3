#pragma once

#include "graph/expression_group.hpp"
#include "plan/expression_plan.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::graph {

// A group compiled for the tensors of one compile call. Immutable; any number of threads may
// execute it at once.
struct compiled_expression {
    std::vector<std::size_t> input_positions; // by the expression's inputs, in the client's list
    std::size_t dst_position = 0;
    std::vector<logical_tensor> inputs;  // as given
    std::vector<logical_tensor> outputs; // as given, dst with shape and strides filled in
    std::shared_ptr<const expression_plan> plan;
    bool is_empty = false; // dst has no elements: pointers may be null
};

// Whether compile_group takes the types of these tensors. Throws as that does for what they lack.
bool takes_types(const expression_group& group, std::span<const logical_tensor> inputs,
                 std::span<const logical_tensor> outputs);

// Compiles the group, its tensors matched by id (first occurrence), extras ignored. Shapes are
// inferred operator by operator. f32, bf16 and f16 of the graph may be given as another of these,
// one for one; values between the operators follow. Throws invalid_argument (missing id, unknown
// shape, unreadable layout, types otherwise than in the graph) and invalid_shape.
compiled_expression compile_group(const expression_group& group,
                                  std::span<const logical_tensor> inputs,
                                  std::span<const logical_tensor> outputs);

// The first of the client's inputs with dst's type and layout: dst may lie in its memory, since the
// loop reads each element before it writes it.
std::optional<std::size_t> input_under_dst(const compiled_expression& compiled);

} // namespace maskwise::graph
