#pragma once

#include "attention/gradients_plan.hpp"

namespace maskwise {

// Writes the gradients. Runs on the threads of `loop` (null: of the caller's oneTBB arena). Throws
// the loop's exceptions, and std::bad_alloc before anything is written. Does not check addresses.
void run_gradients(const gradients_plan& plan, const attention_gradients_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr);

// Uses the description's scale, soft cap and fill.
inline void run_gradients(const gradients_plan& plan, const attention_gradients_operands& addresses,
                          const parallel_loop* loop = nullptr) {
    run_gradients(plan, addresses, plan.attention->numbers, loop);
}

// Bytes of scratch of an execution on `threads` threads.
std::int64_t scratch_bytes(const gradients_plan& plan, int threads);

} // namespace maskwise
