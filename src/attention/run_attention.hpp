#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// Writes dst and statistics, on the threads of oneTBB's arena or, if not null, of the loop. Scratch
// comes from the pool, which several plans may share, or else from the plan's own. Throws
// std::bad_alloc before it writes, and what the loop throws; addresses are not checked.
void run_attention(const tile_plan& plan, const attention_operands& at,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr,
                   scratch_pool<scratch_memory>* pool = nullptr);

// The first with the description's numbers.
inline void run_attention(const tile_plan& plan, const attention_operands& at,
                          const parallel_loop* loop) {
    run_attention(plan, at, plan.numbers, loop);
}

// Bytes of scratch of an execution on so many threads.
std::int64_t scratch_bytes(const tile_plan& plan, int threads);

// Reads cond and bias; single-threaded.
tile_counts count_tiles(const tile_plan& plan, const attention_operands& at);

// Multiplications of an execution, without a mask.
double products_of(const tile_plan& plan);

// Whether there is work for more than one thread.
bool may_use_threads(const tile_plan& plan);

// The threads that an execution would use here and now.
int threads_for(const tile_plan& plan);

} // namespace maskwise
