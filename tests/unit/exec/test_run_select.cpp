#include "exec/parallel.hpp"
#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"
#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace maskwise {
namespace {

select_desc dense(const dims& cond, const dims& shape) {
    return {dense_desc(data_type::boolean, cond), dense_desc(data_type::f32, shape),
            dense_desc(data_type::f32, {}), dense_desc(data_type::f32, shape)};
}

struct select_buffers {
    explicit select_buffers(std::size_t n) : cond(n), src_0(n), dst(n, -1.0F) {
        for (std::size_t i = 0; i < n; ++i) cond[i] = static_cast<unsigned char>(i % 3 == 0);
        std::iota(src_0.begin(), src_0.end(), 1.0F);
    }
    void run(const select_plan& plan) {
        run_select(plan, cond.data(), src_0.data(), &src_1, dst.data());
    }
    bool is_right() const {
        for (std::size_t i = 0; i < dst.size(); ++i)
            if (dst[i] != (cond[i] != 0 ? src_0[i] : src_1)) return false;
        return true;
    }
    std::vector<unsigned char> cond;
    std::vector<float> src_0, dst;
    float src_1 = -7.0F;
};

TEST(run_select, touches_nothing_if_dst_is_empty) {
    const auto plan = make_select_plan(dense({0, 5}, {0, 5}));
    run_select(*plan, nullptr, nullptr, nullptr, nullptr);
}

enum class ran { nothing, plain, streaming };
ran last_run = ran::nothing; // set by the kernels below

// If dst is also a source, reading the source brings dst's lines into the cache. Streaming stores
// would evict these lines, so the next reader would load them from memory again.
TEST(run_select, does_not_stream_in_place) {
    const dims shape{40, 1000};
    select_desc desc = dense(shape, shape);
    desc.src_1 = desc.src_0;
    select_plan plan = *build_plan(desc, active_isa(), 0);
    EXPECT_EQ(plan.key.store, store_policy::stream);
    EXPECT_GT(plan.tiles, 1);
    plan.run = [](const select_tile&) { last_run = ran::streaming; };
    plan.run_plain = [](const select_tile&) { last_run = ran::plain; };
    const std::vector<unsigned char> cond(40000);
    std::vector<float> a(40000), b(40000), c(40000);
    const auto kernel_of = [&](const float* src_0, const float* src_1, float* dst) {
        last_run = ran::nothing;
        run_select(plan, cond.data(), src_0, src_1, dst);
        return last_run;
    };
    EXPECT_EQ(kernel_of(a.data(), b.data(), c.data()), ran::streaming);
    EXPECT_EQ(kernel_of(a.data(), b.data(), a.data()), ran::plain);
    EXPECT_EQ(kernel_of(a.data(), b.data(), b.data()), ran::plain);
}

// A loop that runs backwards on the calling thread and does not allocate.
parallel_loop backwards(int threads, std::int64_t& calls) {
    return {threads, [&calls](std::int64_t count, const std::function<void(std::int64_t)>& body) {
                for (std::int64_t i = count; i-- > 0; ++calls) body(i);
            }};
}

TEST(run_select, the_callers_loop_runs_parts_without_allocating) {
    const auto plan = make_select_plan(dense({1, 1 << 19}, {2, 1 << 19}));
    select_buffers buffers(1 << 20);
    std::copy_n(buffers.cond.begin(), 1 << 19, buffers.cond.begin() + (1 << 19));
    std::int64_t calls = 0;
    const parallel_loop loop = backwards(3, calls);
    const std::int64_t before = test::allocations();
    run_select(*plan, buffers.cond.data(), buffers.src_0.data(), &buffers.src_1, buffers.dst.data(),
               &loop);
    EXPECT_EQ(test::allocations(), before);
    EXPECT_EQ(calls, 12);
    EXPECT_TRUE(buffers.is_right());
}

TEST(run_select, a_loop_may_run_every_part_on_a_separate_thread) {
    const auto plan = make_select_plan(dense({1 << 20}, {1 << 20}));
    const parallel_loop loop{4, [](std::int64_t count, const auto& body) {
                                 std::vector<std::jthread> threads;
                                 for (std::int64_t i = 0; i < count; ++i)
                                     threads.emplace_back([&body, i] { body(i); });
                             }};
    select_buffers buffers(1 << 20);
    for (int i = 0; i < 5; ++i) {
        std::fill(buffers.dst.begin(), buffers.dst.end(), -1.0F);
        run_select(*plan, buffers.cond.data(), buffers.src_0.data(), &buffers.src_1,
                   buffers.dst.data(), &loop);
        EXPECT_TRUE(buffers.is_right());
    }
}

TEST(run_select, a_loop_of_one_thread_is_not_called) {
    const auto plan = make_select_plan(dense({1 << 20}, {1 << 20}));
    select_buffers buffers(1 << 20);
    std::int64_t calls = 0;
    const parallel_loop loop = backwards(1, calls);
    run_select(*plan, buffers.cond.data(), buffers.src_0.data(), &buffers.src_1, buffers.dst.data(),
               &loop);
    EXPECT_EQ(calls, 0);
    EXPECT_TRUE(buffers.is_right());
}

TEST(run_select, a_fork_before_the_first_select_allocates_nothing) {
    const std::int64_t before = test::allocations();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    EXPECT_EQ(test::allocations(), before);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(parallel_run, calls_each_chunk_once) {
    std::vector<std::atomic<int>> calls(1000);
    parallel_run(
        1000,
        [](const void* context, std::int64_t chunk) {
            auto& counts = *static_cast<std::vector<std::atomic<int>>*>(const_cast<void*>(context));
            ++counts[static_cast<std::size_t>(chunk)];
        },
        &calls);
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    EXPECT_GE(available_threads(), 1);
}

} // namespace
} // namespace maskwise
