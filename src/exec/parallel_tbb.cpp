#include "exec/parallel.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <pthread.h>

namespace maskwise {
namespace {

// oneTBB's threads do not exist in the child of a fork, and nothing would start new ones.
bool is_forked_child = false;
[[maybe_unused]] const int watching_forks =
    pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });

} // namespace

int available_threads() {
    if (is_forked_child) return 1;
    const auto allowed =
        tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
    return std::min(tbb::this_task_arena::max_concurrency(), static_cast<int>(allowed));
}

void parallel_run(std::int64_t chunks, chunk_fn body, const void* context) {
    if (is_forked_child) {
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
        return;
    }
    const tbb::blocked_range<std::int64_t> range(0, chunks, 1);
    // Bound to the caller's group, chunks would be left out where that is cancelled.
    tbb::task_group_context own(tbb::task_group_context::isolated);
    tbb::parallel_for(
        range,
        [=](const tbb::blocked_range<std::int64_t>& part) {
            for (std::int64_t chunk = part.begin(); chunk < part.end(); ++chunk)
                body(context, chunk);
        },
        tbb::simple_partitioner(), own);
}

} // namespace maskwise
