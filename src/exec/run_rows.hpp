#pragma once

#include "maskwise/maskwise.hpp"
#include "plan/row_plan.hpp"

#include <cstdint>
#include <span>

namespace maskwise {

// Addresses for a row_plan: scores, result, and the operands in the plan's order.
struct row_pointers {
    const void* scores;
    void* result;
    std::span<const void* const> operands;
    void* statistics = nullptr; // used only if the plan has statistics
    // Added to the row's number before the causal comparison. 0 aligns the mask top-left, and
    // columns - rows bottom-right.
    std::int64_t causal_offset = 0;
};

// Applies the plan's steps to every row, on several threads if there are enough elements. result
// may equal scores if their types are equal. Builds no causal mask, and reads no scores after a
// row's causal boundary. Returns when the result is written. The threads are the loop's, or
// oneTBB's if `loop` is null. Thread-safe. Does not allocate. Exceptions of the loop pass through.
void run_rows(const row_plan& plan, const row_pointers& pointers,
              const parallel_loop* loop = nullptr);

} // namespace maskwise
