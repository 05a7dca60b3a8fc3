#pragma once

#include "plan/plan_data.hpp"

namespace maskwise {

struct operand_pointers {
    const std::byte* cond;
    const std::byte* src_0;
    const std::byte* src_1;
    std::byte* dst;
};

// Runs the tiles [first, last) of the plan, in the plan's order, on this thread.
void run_tiles(const select_plan& plan, select_fn kernel, const operand_pointers& pointers,
               std::int64_t first, std::int64_t last);

} // namespace maskwise
