#include "exec/parallel.hpp"
#include "exec/tbb_library.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <pthread.h>

namespace maskwise {
namespace {

// oneTBB's threads do not survive a fork, and oneTBB would not start new threads in the child. So a
// child that is forked after oneTBB was used runs plans on the calling thread.
std::atomic<bool> is_tbb_used = false;
bool is_without_threads = false;

bool is_tbb_used_by_this_thread() {
    return has_tbb(tbb_search::loaded_only) &&
           tbb::this_task_arena::current_thread_index() != tbb::task_arena::not_initialized;
}

[[maybe_unused]] const int watching_forks = pthread_atfork(
    [] {
        if (is_tbb_used_by_this_thread()) is_tbb_used = true;
    },
    nullptr, [] { is_without_threads = is_tbb_used; });

// Whether oneTBB may run work. If so, marks oneTBB as used.
bool can_use_tbb() {
    if (is_without_threads || !has_tbb(tbb_search::open_too)) return false;
    if (!is_tbb_used.load(std::memory_order_relaxed)) is_tbb_used = true;
    return true;
}

} // namespace

int available_threads() {
    if (!can_use_tbb()) return 1;
    const auto allowed =
        tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
    const int most = tbb::this_task_arena::max_concurrency();
    return allowed < static_cast<std::size_t>(most) ? static_cast<int>(allowed) : most;
}

void parallel_run(std::int64_t chunks, chunk_fn body, const void* context) {
    if (!can_use_tbb()) {
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
        return;
    }
    const tbb::blocked_range<std::int64_t> range(0, chunks, 1);
    const auto run = [=](const tbb::blocked_range<std::int64_t>& part) {
        for (std::int64_t chunk = part.begin(); chunk < part.end(); ++chunk) body(context, chunk);
    };
    // While this thread waits for other threads, it must not start another task of the caller,
    // because the caller may hold a lock that the task needs.
    tbb::this_task_arena::isolate([&] {
        // In the caller's group, chunks would be skipped if that group is cancelled.
        tbb::task_group_context group(tbb::task_group_context::isolated);
        tbb::parallel_for(range, run, tbb::simple_partitioner(), group);
    });
}

} // namespace maskwise
