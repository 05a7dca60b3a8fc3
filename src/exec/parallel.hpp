#pragma once

#include <cstdint>

namespace maskwise {

// The threads that run plans, seen through two functions: parallel_tbb.cpp is what is shipped,
// parallel_std.cpp is for ThreadSanitizer, which cannot follow a oneTBB that it did not compile.

// Threads that a parallel_run called here and now would use, the caller's included: what its task
// arena and tbb::global_control allow. 1 where there is no oneTBB, and in the child of a fork where
// it was used before, by Maskwise or by the thread that forked: its threads are not there.
int available_threads();

using chunk_fn = void (*)(const void* context, std::int64_t chunk);

// Calls body(context, chunk) once for each chunk in [0, chunks), on the caller's thread and others,
// and returns when all are done; meanwhile this thread begins no other task of the caller's. The
// body must not throw.
void parallel_run(std::int64_t chunks, chunk_fn body, const void* context);

} // namespace maskwise
