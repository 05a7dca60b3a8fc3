#pragma once

#include "base/scratch.hpp"
#include "jit/expression_code.hpp"
#include "plan/collapse.hpp"
#include "plan/select_plan.hpp"

#include <memory>
#include <string>
#include <vector>

namespace maskwise {

// An expression by its operands' layouts: inputs in the order of its input nodes.
struct expression_desc {
    jit::expression expression;
    std::vector<tensor_desc> inputs;
    tensor_desc dst;
};

// An input that does not lie along dst's innermost loop is brought into dst's order before the loop
// runs. A dst whose elements are not neighbours is written in order first and spread afterwards.
struct reordering {
    std::shared_ptr<const select_plan> copy; // its cond is true
    std::size_t operand = 0;                 // the expression's input; jit::dst_operand
    std::size_t offset_bytes = 0;            // in the scratch memory
};

// Any number of threads may run it. Tiles are `rows` steps of the second loop times `columns`
// elements of the innermost; the last ones of a loop are smaller.
struct expression_plan {
    expression_desc desc; // as the loop meets the operands
    basic_loop_nest<jit::max_operands> nest;
    std::shared_ptr<const jit::expression_code> code; // null where dst is empty
    store_policy stores = store_policy::plain;
    std::int64_t columns = 1;
    std::int64_t rows = 1;
    std::int64_t tiles = 0;
    std::int64_t moved_bytes = 0;        // dst and what is read of the inputs, each byte once
    std::vector<reordering> reorderings; // mostly none; dst's is first
    std::size_t scratch_bytes = 0;       // for these
    mutable spare<std::byte[]> scratch;
};

// Throws invalid_shape where an input does not broadcast one-way to dst; invalid_argument where
// types differ from the expression's, elements of dst overlap, dst runs backwards and an input does
// not, and as jit::compile does.
std::shared_ptr<const expression_plan> make_expression_plan(expression_desc desc, isa target,
                                                            std::int64_t stream_from_bytes);

// One line: loops, tile, stores, and the expression.
std::string to_string(const expression_plan& plan);

} // namespace maskwise
