#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// Writes dst and statistics. Runs on the threads of `loop`, or of the caller's oneTBB arena if
// `loop` is null. Scratch comes from `pool`, which several plans may share, or from the plan's pool
// if `pool` is null. Throws exceptions of the loop, and std::bad_alloc before anything is written.
// Does not check addresses.
void run_attention(const tile_plan& plan, const attention_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr,
                   scratch_pool<scratch_memory>* pool = nullptr);

// Writes dst and statistics with the description's scale, soft cap and fill (plan.numbers).
inline void run_attention(const tile_plan& plan, const attention_operands& addresses,
                          const parallel_loop* loop) {
    run_attention(plan, addresses, plan.numbers, loop);
}

// Bytes of scratch for an execution on `threads` threads.
std::int64_t scratch_bytes(const tile_plan& plan, int threads);

// Counts the tiles of all heads by their treatment. Reads cond and bias. Runs on the calling
// thread.
tile_counts count_tiles(const tile_plan& plan, const attention_operands& addresses);

// `loop`, or a loop on the calling thread alone if the work is not worth the threads of `loop`.
// Null if `loop` is null.
const parallel_loop* loop_for(const tile_plan& plan, const parallel_loop* loop);

// Whether the work is worth more than one thread.
bool may_use_threads(const tile_plan& plan);

// The number of threads that an execution from the calling thread would use.
int threads_for(const tile_plan& plan);

} // namespace maskwise
