#pragma once

#include "jit/expression_code.hpp"
#include "plan/collapse.hpp"

#include <memory>
#include <string>
#include <vector>

namespace maskwise {

// An expression by its operands' layouts: inputs in the order of its input nodes.
struct expression_desc {
    jit::expression what;
    std::vector<tensor_desc> inputs;
    tensor_desc dst;
};

// Immutable; any number of threads may run it. Tiles are `rows` steps of the second loop times
// `columns` elements of the innermost; the last ones of a loop are smaller.
struct expression_plan {
    expression_desc desc;
    basic_loop_nest<jit::max_operands> nest;
    std::shared_ptr<const jit::expression_code> code; // null where dst is empty
    store_policy stores = store_policy::plain;
    std::int64_t columns = 1;
    std::int64_t rows = 1;
    std::int64_t tiles = 0;
    std::int64_t moved_bytes = 0; // dst and what is read of the inputs, each byte once
};

// Throws invalid_shape where an input does not broadcast one-way to dst; invalid_argument where
// types differ from the expression's, elements of dst overlap, dst or an input steps along the
// innermost loop otherwise than by one element or none, and as jit::compile does.
std::shared_ptr<const expression_plan> make_expression_plan(expression_desc desc, isa target,
                                                            std::int64_t stream_from_bytes);

// Whether the operand can be read, or written, along dst's innermost loop. Where not, the caller
// brings it into dst's order first.
bool runs_along(const tensor_desc& operand, const tensor_desc& dst);

// One line: loops, tile, stores, and the expression.
std::string to_string(const expression_plan& plan);

} // namespace maskwise
