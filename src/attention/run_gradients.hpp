#pragma once

#include "attention/gradients_plan.hpp"

namespace maskwise {

// Writes the gradients, on the threads of oneTBB's arena or, if not null, of the loop. Throws
// std::bad_alloc before it writes, and exceptions of the loop; addresses are not checked.
void run_gradients(const gradients_plan& plan, const attention_gradients_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr);

// With the numbers of the description.
inline void run_gradients(const gradients_plan& plan, const attention_gradients_operands& addresses,
                          const parallel_loop* loop = nullptr) {
    run_gradients(plan, addresses, plan.attention->numbers, loop);
}

// Bytes of scratch memory of an execution on this many threads.
std::int64_t scratch_bytes(const gradients_plan& plan, int threads);

} // namespace maskwise
