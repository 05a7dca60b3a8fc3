// A forked child compiles and runs, even if another thread of the parent was compiling. The child
// uses threads if the parent never started oneTBB's threads. Each test is a separate process.

#include "exec/parallel.hpp"
#include "exec/run_rows.hpp"
#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace maskwise {
namespace {

// Returns the result of body() in a child process, or -1 if the child crashes. An alarm ends a
// child that hangs.
int answer_of_child(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(body());
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

bool select_works() {
    const std::vector<unsigned char> cond{1, 0, 1}, src_0{1, 2, 3}, src_1{4, 5, 6};
    std::vector<unsigned char> dst(3);
    const auto plan =
        make_select_plan({dense_desc(data_type::boolean, {3}), dense_desc(data_type::u8, {3}),
                          dense_desc(data_type::u8, {3}), dense_desc(data_type::u8, {3})});
    run_select(*plan, cond.data(), src_0.data(), src_1.data(), dst.data());
    return dst == std::vector<unsigned char>{1, 5, 3};
}

void wait_for_chunks(const void*, std::int64_t) {
    std::this_thread::yield();
}

void run_a_row() {
    row_desc desc;
    desc.scores = desc.result = dense_desc(data_type::f32, {1, 4});
    float scores[4] = {1, 2, 3, 4}, result[4];
    run_rows(make_row_plan(desc, active_isa()), {scores, result, {}});
}

TEST(fork_of_a_process, gives_the_child_threads_unless_the_parent_used_them) {
    select_works();
    run_a_row(); // Select and rows are too small for threads
    const int threads = answer_of_child(available_threads);
    parallel_run(64, wait_for_chunks, nullptr);
    EXPECT_EQ(answer_of_child([] {
                  parallel_run(64, wait_for_chunks, nullptr);
                  return available_threads();
              }),
              1);
    EXPECT_EQ(threads, available_threads());
}

// Forks `delay` after another thread begins the process's first compile. Returns 0 if a Select
// works in the child.
int fork_beside_first_compile(std::chrono::microseconds delay) {
    std::atomic<bool> has_begun{false};
    std::jthread first([&] {
        has_begun = true;
        select_works();
    });
    while (!has_begun) std::this_thread::yield();
    const auto moment = std::chrono::steady_clock::now() + delay;
    while (std::chrono::steady_clock::now() < moment) {
    }
    return answer_of_child([] { return select_works() ? 0 : 1; });
}

TEST(fork_of_a_process, may_interrupt_the_first_compile_of_another_thread) {
#ifdef MASKWISE_ADDRESS_SANITIZER
    GTEST_SKIP()
        << "parent threads, which the child lacks, may hold locks of the sanitizer's allocator";
#endif
    for (int i = 0; i < 200; ++i)
        ASSERT_EQ(answer_of_child(
                      [i] { return fork_beside_first_compile(std::chrono::microseconds(i)); }),
                  0)
            << i;
}

} // namespace
} // namespace maskwise
