#pragma once

#include <cstdint>

namespace maskwise {

// The threads that run plans. parallel_tbb.cpp is shipped. parallel_std.cpp is for ThreadSanitizer,
// which cannot follow a oneTBB that it did not compile.

// Threads, including the caller's, that a parallel_run from this thread would use: what its task
// arena and tbb::global_control allow. 1 without oneTBB. 1 in the child of a fork if Maskwise or
// the forking thread used oneTBB before, because the child does not have its threads.
int available_threads();

using chunk_fn = void (*)(const void* context, std::int64_t chunk);

// Calls body(context, chunk) once for each chunk in [0, chunks), on the caller's thread and others.
// Returns when all are done. While it waits, this thread starts no other task of the caller. The
// body must not throw.
void parallel_run(std::int64_t chunks, chunk_fn body, const void* context);

} // namespace maskwise
