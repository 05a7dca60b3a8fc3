#include "exec/parallel.hpp"
#include "exec/run_select.hpp"
#include "plan/plan_data.hpp"
#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <sys/wait.h>
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

TEST(run_select, touches_nothing_where_dst_is_empty) {
    const auto plan = make_select_plan(dense({0, 5}, {0, 5}));
    run_select(*plan, nullptr, nullptr, nullptr, nullptr);
}

TEST(run_select, does_not_allocate_in_one_thread) {
    for (const dims& shape : {dims{64}, dims{9, 7, 3}, dims{100, 100}}) {
        const auto plan = make_select_plan(dense(shape, shape));
        select_buffers data(static_cast<std::size_t>(element_count(shape)));
        const std::int64_t before = test::allocations();
        data.run(*plan);
        EXPECT_EQ(test::allocations(), before);
        EXPECT_TRUE(data.is_right());
    }
}

// Nobody could be told that there is no memory for it.
TEST(run_select, a_fork_before_its_first_use_allocates_nothing) {
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
            auto& all = *static_cast<std::vector<std::atomic<int>>*>(const_cast<void*>(context));
            ++all[static_cast<std::size_t>(chunk)];
        },
        &calls);
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    EXPECT_GE(available_threads(), 1);
}

} // namespace
} // namespace maskwise
