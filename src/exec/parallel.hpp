#pragma once

#include <cstdint>

namespace maskwise {

// The threads that run plans. parallel_tbb.cpp is shipped. parallel_std.cpp is for ThreadSanitizer,
// which cannot follow an uninstrumented oneTBB.

// Returns how many threads, including the caller's, a parallel_run from this thread would use. The
// thread's task arena and tbb::global_control limit the number. Returns 1 without oneTBB. Also
// returns 1 in the child of a fork if Maskwise or the forking thread used oneTBB before the fork,
// because the child does not have oneTBB's threads.
int available_threads();

using chunk_fn = void (*)(const void* context, std::int64_t chunk);

// Calls body(context, chunk) once for each chunk in [0, chunks), on the caller's thread and others.
// Returns when all calls are done. While the caller's thread waits, it runs none of the
// application's tasks. `body` must not throw.
void parallel_run(std::int64_t chunks, chunk_fn body, const void* context);

} // namespace maskwise
