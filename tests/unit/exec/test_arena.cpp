// Maskwise respects the caller's task arena and global_control, and runs inside tasks.

#include "exec/parallel.hpp"
#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"

#include <gtest/gtest.h>

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace maskwise {
namespace {

TEST(available_threads, is_limited_by_the_arena) {
    tbb::task_arena one(1);
    EXPECT_EQ(one.execute([] { return available_threads(); }), 1);
}

TEST(available_threads, is_capped_by_global_control) {
    const tbb::global_control cap(tbb::global_control::max_allowed_parallelism, 1);
    EXPECT_EQ(available_threads(), 1);
}

TEST(available_threads, ignores_an_unlimited_global_control) {
    const int unlimited = available_threads();
    const tbb::global_control none(tbb::global_control::max_allowed_parallelism, SIZE_MAX);
    EXPECT_EQ(available_threads(), unlimited);
}

struct thread_log {
    std::mutex mutex;
    std::set<std::thread::id> seen;
};

TEST(parallel_run, stays_in_an_arena_of_one_thread) {
    thread_log log;
    tbb::task_arena one(1);
    one.execute([&] {
        parallel_run(
            64,
            [](const void* context, std::int64_t) {
                auto& threads = *static_cast<thread_log*>(const_cast<void*>(context));
                const std::lock_guard lock(threads.mutex);
                threads.seen.insert(std::this_thread::get_id());
            },
            &log);
    });
    EXPECT_EQ(log.seen.size(), 1U);
}

// The caller's thread and another thread meet inside one parallel_run.
struct meeting {
    explicit meeting(tbb::task_arena& where) : arena(where) {}

    tbb::task_arena& arena;
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> has_helper = false, has_caller_run_task = false;
};

// Waits for at most 200 sleeps of 100 us, because the flag may never be set.
void wait_for(const std::atomic<bool>& flag) {
    for (int i = 0; i < 200 && !flag; ++i)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// The caller's chunk waits for a second thread. The second thread adds a task to the arena and
// delays its own chunk, so that the caller waits for this chunk.
void meet(const void* context, std::int64_t) {
    const auto& shared = *static_cast<const std::shared_ptr<meeting>*>(context);
    if (std::this_thread::get_id() == shared->caller) return wait_for(shared->has_helper);
    shared->has_helper = true;
    shared->arena.enqueue([shared] {
        if (std::this_thread::get_id() == shared->caller) shared->has_caller_run_task = true;
    });
    wait_for(shared->has_caller_run_task);
}

// The caller may hold a lock that its other tasks need. While waiting for chunks of other threads,
// the caller must not begin such a task.
TEST(parallel_run, begins_no_other_task_while_it_waits) {
    tbb::task_arena arena(2);
    for (int i = 0; i < 5; ++i) {
        const auto shared = std::make_shared<meeting>(arena);
        arena.execute([&] { parallel_run(2, meet, &shared); });
        EXPECT_FALSE(shared->has_caller_run_task);
    }
}

// Selects `n` bytes of src_0; src_1 is a scalar.
struct all_true_select {
    explicit all_true_select(std::int64_t n)
        : cond(static_cast<std::size_t>(n), 1), src_0(cond.size(), 5),
          plan(
              make_select_plan({dense_desc(data_type::boolean, {n}), dense_desc(data_type::u8, {n}),
                                dense_desc(data_type::u8, {}), dense_desc(data_type::u8, {n})})) {}

    std::vector<unsigned char> empty_result() const {
        return std::vector<unsigned char>(cond.size());
    }
    void run(std::vector<unsigned char>& dst) const {
        run_select(*plan, cond.data(), src_0.data(), &src_1, dst.data());
    }

    std::vector<unsigned char> cond, src_0;
    unsigned char src_1 = 9;
    std::shared_ptr<const select_plan> plan;
};

TEST(run_select, works_inside_tasks) {
    const all_true_select select(1 << 20);
    std::vector<std::vector<unsigned char>> results(6, select.empty_result());
    tbb::parallel_for(std::size_t{0}, results.size(),
                      [&](std::size_t i) { select.run(results[i]); });
    for (const auto& result : results) EXPECT_EQ(result, select.src_0);
}

// Cancelling the caller's task group must not cancel the Select.
TEST(run_select, completes_although_the_callers_tasks_are_cancelled) {
    const all_true_select select(1 << 22);
    auto result = select.empty_result();
    tbb::task_group_context callers;
    tbb::parallel_for(
        0, 1,
        [&](int) {
            callers.cancel_group_execution();
            select.run(result);
        },
        callers);
    EXPECT_EQ(result, select.src_0);
}

} // namespace
} // namespace maskwise
