#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// Writes dst and statistics. Runs on the threads of `loop`, or of the caller's oneTBB arena if
// `loop` is null. Scratch comes from `pool`, or from the plan's pool if `pool` is null. Several
// plans may share a pool. Throws the loop's exceptions, and std::bad_alloc before anything is
// written. Does not check addresses.
void run_attention(const tile_plan& plan, const attention_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr,
                   scratch_pool<scratch_memory>* pool = nullptr);

// Uses the description's scale, soft cap and fill (plan.numbers).
inline void run_attention(const tile_plan& plan, const attention_operands& addresses,
                          const parallel_loop* loop) {
    run_attention(plan, addresses, plan.numbers, loop);
}

// Returns the bytes of scratch of an execution on `threads` threads.
std::int64_t scratch_bytes(const tile_plan& plan, int threads);

// Counts the tiles of all heads by treatment. Reads cond and bias. Runs on the calling thread.
tile_counts count_tiles(const tile_plan& plan, const attention_operands& addresses);

// Returns `loop`, or a loop on the calling thread if the work is too small for several threads.
// Returns null if `loop` is null.
const parallel_loop* loop_for(const tile_plan& plan, const parallel_loop* loop);

// Whether the work is large enough for several threads.
bool may_use_threads(const tile_plan& plan);

// Returns the number of threads that an execution from the calling thread would use.
int threads_for(const tile_plan& plan);

} // namespace maskwise
