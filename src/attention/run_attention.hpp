#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// Writes dst and statistics. Runs on the threads of `loop`; if null, of oneTBB's arena. Scratch
// comes from `pool`, which several plans may share; if null, from the plan's pool. Throws
// std::bad_alloc before it writes, and whatever the loop throws. Does not check addresses.
void run_attention(const tile_plan& plan, const attention_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr,
                   scratch_pool<scratch_memory>* pool = nullptr);

// With the numbers of the description.
inline void run_attention(const tile_plan& plan, const attention_operands& addresses,
                          const parallel_loop* loop) {
    run_attention(plan, addresses, plan.numbers, loop);
}

// Bytes of scratch for an execution on `threads` threads.
std::int64_t scratch_bytes(const tile_plan& plan, int threads);

// Reads cond and bias; single-threaded.
tile_counts count_tiles(const tile_plan& plan, const attention_operands& addresses);

// The host's loop, or one of the calling thread if the work is not worth the host's threads.
const parallel_loop* loop_for(const tile_plan& plan, const parallel_loop* loop);

// Whether the work is worth more than one thread.
bool may_use_threads(const tile_plan& plan);

// The threads that an execution from the calling thread would use.
int threads_for(const tile_plan& plan);

} // namespace maskwise
