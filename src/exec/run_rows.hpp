#pragma once

#include "maskwise/maskwise.hpp"
#include "plan/row_plan.hpp"

#include <cstdint>
#include <span>

namespace maskwise {

// Memory of a row_plan: scores, result and one pointer an operand, in the plan's order.
struct row_pointers {
    const void* scores;
    void* result;
    std::span<const void* const> operands;
    void* statistics = nullptr; // where the plan has them
    // Added to the row's number before the causal comparison: 0 is top-left, S_kv - S_q
    // bottom-right.
    std::int64_t causal_offset = 0;
};

// Runs every row through the plan's steps, in parallel where that pays. result may be scores where
// both have one type. A causal mask is never built, and scores behind a row's boundary are not
// read. Returns when the result is written. The threads are the loop's, or oneTBB's where it is
// null. Any thread; allocates nothing; passes on what the loop throws.
void run_rows(const row_plan& plan, const row_pointers& at, const parallel_loop* loop = nullptr);

} // namespace maskwise
