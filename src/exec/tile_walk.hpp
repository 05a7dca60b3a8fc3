#pragma once

#include "plan/select_plan.hpp"

namespace maskwise {

struct operand_pointers {
    const std::byte* cond;
    const std::byte* src_0;
    const std::byte* src_1;
    std::byte* dst;
};

// Returns the address in each operand where the plan's loops begin. Does not add in place, because
// loads of two pointers at once would then wait for the stores of single pointers.
inline per_operand<std::byte*> loops_begin(const select_plan& plan,
                                           const operand_pointers& pointers) {
    const auto& first = plan.nest.first_bytes;
    return {const_cast<std::byte*>(pointers.cond) + first[op_cond],
            const_cast<std::byte*>(pointers.src_0) + first[op_src_0],
            const_cast<std::byte*>(pointers.src_1) + first[op_src_1], pointers.dst + first[op_dst]};
}

inline select_tile make_tile(const tile_shape& shape, const per_operand<std::byte*>& pointers) {
    const auto& [rows, columns, access, pick_offsets] = shape;
    return {pointers[op_cond],
            pointers[op_src_0],
            pointers[op_src_1],
            pointers[op_dst],
            rows,
            columns,
            access[op_cond].row_bytes,
            access[op_src_0].row_bytes,
            access[op_src_1].row_bytes,
            access[op_dst].row_bytes};
}

// Runs a plan without tiles: strings, or an empty dst.
void run_strings(const select_plan& plan, const operand_pointers& pointers,
                 const parallel_loop* loop);

// Runs the tiles [first, last) of the plan, in the plan's order, on this thread.
void run_tiles(const select_plan& plan, select_fn kernel, const operand_pointers& pointers,
               std::int64_t first, std::int64_t last);

} // namespace maskwise
