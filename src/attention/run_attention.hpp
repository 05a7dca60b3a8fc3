#pragma once

#include "attention/attention_plan.hpp"

namespace maskwise {

// Writes dst and statistics, on the threads of oneTBB's arena or, where given, of the loop. Throws
// std::bad_alloc before it writes, and what the loop throws; addresses are not checked.
void run_attention(const attention_data& plan, const attention_operands& at,
                   const attention_numbers& numbers, const parallel_loop* loop = nullptr);

// The same on memory of the caller's, who may keep it for any other plan; it grows where it is too
// small.
void run_attention(const attention_data& plan, const attention_operands& at,
                   const attention_numbers& numbers, const parallel_loop* loop,
                   std::unique_ptr<attention_scratch>& memory);

// The first with the description's numbers.
inline void run_attention(const attention_data& plan, const attention_operands& at,
                          const parallel_loop* loop) {
    run_attention(plan, at, plan.numbers, loop);
}

// Bytes of scratch of an execution on so many threads.
std::int64_t scratch_bytes(const attention_data& plan, int threads);

// Reads cond and bias; single-threaded.
tile_counts count_tiles(const attention_data& plan, const attention_operands& at);

// Multiplications of an execution, without a mask.
double products_of(const attention_data& plan);

// Whether there is work for more than one thread.
bool may_use_threads(const attention_data& plan);

// The threads that an execution would use here and now.
int threads_for(const attention_data& plan);

} // namespace maskwise
