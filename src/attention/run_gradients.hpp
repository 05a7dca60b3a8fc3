#pragma once

#include "attention/gradients_plan.hpp"

namespace maskwise {

// Writes the gradients. Runs on the threads of `loop`, or of the caller's oneTBB arena if `loop` is
// null. Throws exceptions of the loop, and std::bad_alloc before anything is written. Does not
// check addresses.
void run_gradients(const gradients_plan& plan, const attention_gradients_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr);

// Writes the gradients with the description's scale, soft cap and fill.
inline void run_gradients(const gradients_plan& plan, const attention_gradients_operands& addresses,
                          const parallel_loop* loop = nullptr) {
    run_gradients(plan, addresses, plan.attention->numbers, loop);
}

// Bytes of scratch memory of an execution on this many threads.
std::int64_t scratch_bytes(const gradients_plan& plan, int threads);

} // namespace maskwise
