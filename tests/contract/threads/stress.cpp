// Clients whose threads use separate graphs, share a compiled partition, create and destroy
// handles, call from separate task arenas, or fork the process.

#include "support/client/graph_client.hpp"
#include "support/client/library_facts.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#ifdef MASKWISE_STRESS_WITH_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#endif

namespace maskwise::test {
namespace {

// Sanitizers slow every step, but need fewer rounds to report a fault.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int rounds = 8;
#else
constexpr int rounds = 60;
#endif
constexpr int threads = 6;

// cond is one row, and the first source is one column. From n = 600 on, the Select is large enough
// for several threads.
node square_select(std::int64_t n) {
    return select_of({1, n}, {n, 1}, {n, n}, {n, n});
}

std::vector<std::uint8_t> expected(const node& spec) {
    memory bytes;
    select_by_reference(spec, bytes);
    return bytes.at(3);
}

// A compiled partition and its expected result. Each thread passes its own stream, because oneDNN's
// streams are not thread-safe.
class job {
public:
    explicit job(std::int64_t n) : select_(square_select(n)), expected_(test::expected(select_)) {
        const auto graph = build({select_});
        partitions_ = partitions_of(graph.get());
        compiled_ = compile(partitions_.at(0).get(), select_.inputs, select_.outputs);
    }

    bool runs_right(dnnl_stream_t stream) const {
        memory bytes;
        return compiled_ &&
               execute(compiled_.get(), select_.inputs, select_.outputs, bytes, stream) ==
                   dnnl_success &&
               bytes.at(3) == expected_;
    }

private:
    node select_;
    std::vector<std::uint8_t> expected_;
    std::vector<owned_partition> partitions_;
    owned_compiled compiled_;
};

class own_stream {
public:
    own_stream() { dnnl_stream_create(&stream_, cpu_engine(), dnnl_stream_default_flags); }
    ~own_stream() { dnnl_stream_destroy(stream_); }
    own_stream(const own_stream&) = delete;
    own_stream& operator=(const own_stream&) = delete;
    operator dnnl_stream_t() const { return stream_; }

private:
    dnnl_stream_t stream_ = nullptr;
};

// Runs body(step, stream) on all threads at once. Returns how often `body` returned false.
int failures(const std::function<bool(int, dnnl_stream_t)>& body) {
    std::atomic<int> failed = 0;
    std::atomic<int> waiting = threads;
    cpu_engine();
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            const own_stream stream;
            --waiting;
            while (waiting > 0) std::this_thread::yield();
            for (int round = 0; round < rounds; ++round)
                if (!body(t * rounds + round, stream)) ++failed;
        });
    running.clear();
    return failed;
}

TEST(stress, graphs_of_many_threads) {
    EXPECT_EQ(failures([](int step, dnnl_stream_t stream) {
                  return job(1 + step % 40).runs_right(stream);
              }),
              0);
}

TEST(stress, one_compiled_partition_for_all) {
    const job shared(700);
    EXPECT_EQ(failures([&](int, dnnl_stream_t stream) { return shared.runs_right(stream); }), 0);
}

// Half of the threads create and destroy entries of the handle table next to the entry in use.
TEST(stress, handles_come_and_go_during_executions) {
    const job shared(64);
    EXPECT_EQ(failures([&](int step, dnnl_stream_t stream) {
                  if (step / rounds % 2 == 0) return shared.runs_right(stream);
                  const job fleeting(3 + step % 5);
                  return fleeting.runs_right(stream);
              }),
              0);
}

#ifdef MASKWISE_STRESS_WITH_TBB
TEST(stress, callers_with_separate_arenas) {
    const job shared(700);
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 2);
    EXPECT_EQ(failures([&](int step, dnnl_stream_t stream) {
                  tbb::task_arena arena(1 + step % 3);
                  return arena.execute([&] { return shared.runs_right(stream); });
              }),
              0);
}
#endif

// Other threads are changing Maskwise's tables when the child is forked.
TEST(stress, a_child_builds_after_a_fork_during_builds) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's own memory does not survive this fork";
#endif
    const node select = square_select(8);
    ASSERT_TRUE(build({select})); // creates oneDNN's one-time state
    std::atomic<bool> is_over = false;
    const auto keep_building = [&] {
        while (!is_over) build({select});
    };
    std::jthread first(keep_building), second(keep_building);
    int failed = 0;
    for (int i = 0; i < 50 && failed == 0; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(build({select}) ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    is_over = true;
    EXPECT_EQ(failed, 0);
}

// Threads do not survive a fork, so Maskwise runs on the calling thread in the child.
TEST(stress, the_child_of_a_fork_runs_inline) {
    if (is_sycl()) GTEST_SKIP() << "a SYCL queue does not survive a fork";
    const job before(700);
    ASSERT_TRUE(before.runs_right(cpu_stream()));
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(before.runs_right(cpu_stream()) && job(710).runs_right(cpu_stream()) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_TRUE(before.runs_right(cpu_stream()));
}

} // namespace
} // namespace maskwise::test
