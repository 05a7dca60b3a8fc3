#include "base/error.hpp"
#include "plan/loop_order.hpp"
#include "plan/select_plan.hpp"
#include "support/texts.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace maskwise {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

select_desc dense(data_type type, const dims& cond, const dims& src_0, const dims& src_1,
                  const dims& dst) {
    return {dense_desc(data_type::boolean, cond), dense_desc(type, src_0), dense_desc(type, src_1),
            dense_desc(type, dst)};
}

select_desc permuted() {
    select_desc desc = dense(data_type::f32, {2, 3, 4}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4});
    for (tensor_desc* tensor : {&desc.cond, &desc.src_0, &desc.src_1, &desc.dst}) {
        const auto width = static_cast<std::int64_t>(width_bytes(tensor->type));
        tensor->strides_bytes = {width, 8 * width, 2 * width}; // one permuted layout for all
    }
    return desc;
}

TEST(loop_nest, merges_loops_that_form_one_loop) {
    const dims big{16, 16, 256, 256};
    const loop_nest same = make_loop_nest(dense(data_type::f32, big, big, big, big));
    EXPECT_EQ(same.rank, 1);
    EXPECT_EQ(same[0].extent, 16 * 16 * 256 * 256);
    const loop_nest shared = make_loop_nest(dense(data_type::f32, {256, 256}, big, big, big));
    EXPECT_EQ(shared.rank, 2);
    EXPECT_EQ(shared[0].extent, 65536);
    EXPECT_EQ(shared[1].stride_bytes[op_cond], 0);
    EXPECT_EQ(make_loop_nest(permuted()).rank, 1);
}

TEST(loop_nest, handles_zero_or_one_element) {
    EXPECT_EQ(make_loop_nest(dense(data_type::f32, {}, {}, {}, {})).rank, 0);
    EXPECT_EQ(make_loop_nest(dense(data_type::f32, {1, 1}, {}, {1}, {1, 1})).elements, 1);
    EXPECT_EQ(make_loop_nest(dense(data_type::f32, {1}, {0, 4}, {4}, {0, 4})).elements, 0);
}

TEST(loop_nest, refuses_operands_that_do_not_broadcast) {
    EXPECT_THROW(make_loop_nest(dense(data_type::f32, {3}, {4}, {4}, {4})), shape_error);
    EXPECT_THROW(make_loop_nest(dense(data_type::f32, {4}, {2, 4}, {4}, {4})), shape_error);
}

TEST(loop_nest, names_the_operand_that_it_refuses) {
    const auto text = [](const dims& cond, const dims& src_0, const dims& src_1) {
        return test::refusal<shape_error>(
            [&] { make_loop_nest(dense(data_type::f32, cond, src_0, src_1, {4})); });
    };
    EXPECT_TRUE(test::has(text({3}, {4}, {4}), {"cond"}));
    EXPECT_TRUE(test::has(text({4}, {3}, {4}), {"src_0"}));
    EXPECT_TRUE(test::has(text({4}, {4}, {3}), {"src_1"}));
}

TEST(loop_nest, refuses_wrong_widths) {
    select_desc desc = dense(data_type::f32, {4}, {4}, {4}, {4});
    desc.src_1.type = data_type::bf16;
    EXPECT_THROW(make_loop_nest(desc), argument_error);
    desc = dense(data_type::f32, {4}, {4}, {4}, {4});
    desc.cond.type = data_type::f16;
    EXPECT_THROW(make_loop_nest(desc), argument_error);
    desc = dense(data_type::string, {4}, {4}, {4}, {4});
    EXPECT_NO_THROW(make_loop_nest(desc));
    desc.src_0.type = data_type::complex128;
    EXPECT_THROW(make_loop_nest(desc), argument_error);
}

TEST(loop_nest, names_the_expected_width) {
    select_desc desc = dense(data_type::f32, {4}, {4}, {4}, {4});
    desc.src_1 = dense_desc(data_type::bf16, {4});
    EXPECT_EQ(test::refusal<argument_error>([&] { make_loop_nest(desc); }),
              "src_1 (bf16 {4}, strides in bytes {2}) has elements of 2 bytes, expected 4");
}

TEST(loop_nest, walks_a_backward_dst_from_its_other_end) {
    select_desc desc = dense(data_type::f32, {2, 4}, {2, 4}, {2, 4}, {2, 4});
    desc.dst.strides_bytes = {-16, -4};
    desc.src_1.strides_bytes = {-16, -4};
    const loop_nest nest = make_loop_nest(desc);
    ASSERT_EQ(nest.rank, 1);
    EXPECT_EQ(nest[0].stride_bytes, (per_operand<std::int64_t>{-1, -4, 4, 4}));
    EXPECT_EQ(nest.first_bytes, (per_operand<std::int64_t>{7, 28, -28, -28}));
}

TEST(loop_nest, refuses_a_dst_that_overlaps) {
    select_desc desc = dense(data_type::f32, {2, 4}, {2, 4}, {2, 4}, {2, 4});
    for (const dims& strides : {dims{0, 4}, dims{4, 4}, dims{12, 4}, dims{16, 3}, dims{16, 0}}) {
        desc.dst.strides_bytes = strides;
        EXPECT_THROW(make_loop_nest(desc), argument_error) << to_string(strides);
    }
    desc.dst.strides_bytes = {20, 4};
    EXPECT_NO_THROW(make_loop_nest(desc));
    desc.dst.strides_bytes = {-16, 4};
    EXPECT_NO_THROW(make_loop_nest(desc));
    desc.dst.strides_bytes = {-12, 4};
    EXPECT_THROW(make_loop_nest(desc), argument_error);
    desc.dst.strides_bytes = {16};
    EXPECT_THROW(make_loop_nest(desc), argument_error);
}

TEST(loop_nest, refuses_byte_counts_that_overflow) {
    select_desc desc = dense(data_type::f64, {1}, {1}, {1}, {4});
    desc.dst.strides_bytes = {never / 2};
    EXPECT_THROW(make_loop_nest(desc), shape_error);
}

std::string plan_of(const select_desc& desc, std::int64_t stream_from = never) {
    return to_string(*build_plan(desc, isa::scalar, stream_from));
}

TEST(plan, prints_one_line) {
    const dims big{16, 16, 256, 256};
    const std::string text = plan_of(dense(data_type::f32, {256, 256}, big, {}, big), 0);
    EXPECT_EQ(text,
              "nest=256x65536 box=1x16384 tile=1x16384 grid=256x4 order=256>65536 "
              "cond=unit src_0=unit src_1=zero dst=unit kernel=select_x32_uuz_stream isa=scalar");
    EXPECT_EQ(plan_of(dense(data_type::f32, {0}, {0}, {0}, {0})), "empty");
}

TEST(plan, flattens_short_rows_and_packs_other_operands) {
    const std::string text = plan_of(dense(data_type::f32, {2048, 1}, {2048, 3}, {3}, {2048, 3}));
    EXPECT_TRUE(test::has(
        text, {"box=512x3 tile=1x1536", "cond=transpose src_0=unit src_1=repeat dst=unit"}));
}

TEST(plan, transposes_in_blocks) {
    select_desc desc = dense(data_type::f32, {512, 512}, {512, 512}, {512, 512}, {512, 512});
    desc.src_1.strides_bytes = {4, 2048};
    EXPECT_TRUE(test::has(plan_of(desc), {"src_1=transpose+ahead dst=unit kernel=select_x32_uuu"}));
}

// dst has `groups` rows of `items`. src_1 is column-major, with `gap` elements between columns.
std::string plan_of_transposed(std::int64_t groups, std::int64_t items, std::int64_t gap) {
    const dims shape{groups, items};
    select_desc desc = dense(data_type::f32, shape, shape, shape, shape);
    desc.src_1.strides_bytes = {4, 4 * (groups + gap)};
    return plan_of(desc);
}

TEST(plan, names_ways_to_pack) {
    select_desc desc = dense(data_type::f32, {300, 1}, {300, 8}, {300, 8}, {300, 8});
    desc.src_0.strides_bytes = {96, 12};
    desc.dst.strides_bytes = {80, 8};
    EXPECT_TRUE(
        test::has(plan_of(desc),
                  {"cond=splat src_0=step src_1=unit dst=scatter kernel=select_x32_uuu_plain"}));
}

// The pick kernel runs for 16-byte elements if both sources are packed one element at a time. It
// does not run if a source is broadcast along rows or has runs of adjacent elements.
TEST(plan, picks_wide_separate_elements) {
    const auto text_of = [](data_type type, const dims& src_1, std::int64_t step) {
        select_desc desc = dense(type, {40, 300}, {40, 300}, src_1, {40, 300});
        const auto width = static_cast<std::int64_t>(width_bytes(type));
        desc.src_0.strides_bytes = {600 * width, 2 * width};
        desc.src_1.strides_bytes = {300 * step * width, step * width};
        return plan_of(desc);
    };
    const auto picks = [&](auto... arguments) {
        return test::has(text_of(arguments...), {"mixed=pick"});
    };
    EXPECT_TRUE(picks(data_type::complex128, dims{40, 300}, 3));
    EXPECT_FALSE(picks(data_type::f64, dims{40, 300}, 3));
    EXPECT_FALSE(picks(data_type::complex128, dims{40, 300}, 1));
    EXPECT_FALSE(picks(data_type::complex128, dims{1, 300}, 3));
}

// A loop is cut, and has a tail tile, if the tile does not divide the loop's extent. The plan has
// one tile shape for every subset of the cut loops.
TEST(plan, has_a_shape_for_each_set_of_cut_loops) {
    for (const auto& [rows, columns] :
         {std::pair{64, 128}, std::pair{64, 500}, std::pair{1000, 1000}}) {
        const dims shape{rows, columns};
        select_desc desc = dense(data_type::f32, shape, shape, shape, shape);
        desc.src_1.strides_bytes = {4, 4 * std::int64_t{rows}};
        const auto plan = build_plan(desc, isa::scalar, never);
        std::size_t wanted = 1;
        for (int d = 0; d < plan->nest.rank; ++d)
            if (plan->nest[d].extent % plan->tile[d] != 0) wanted *= 2;
        EXPECT_EQ(plan->shapes.size(), wanted) << to_string(*plan);
    }
}

// A transposition by blocks pays from 4 groups of 4 items, from 32 groups of any size, or from 32
// dense items (`gap` 0) in any number of groups.
TEST(plan, transposes_if_blocks_pay) {
    const auto transposes = [](std::int64_t groups, std::int64_t items, std::int64_t gap) {
        return test::has(plan_of_transposed(groups, items, gap), {"src_1=transpose"});
    };
    EXPECT_TRUE(transposes(4, 4, 1));
    EXPECT_FALSE(transposes(3, 4, 1));
    EXPECT_FALSE(transposes(4, 3, 1));
    EXPECT_TRUE(transposes(32, 3, 1));
    EXPECT_FALSE(transposes(31, 3, 1));
    EXPECT_TRUE(transposes(3, 32, 0));
    EXPECT_FALSE(transposes(3, 31, 0));
    EXPECT_FALSE(transposes(3, 32, 1));
}

// cond has 300 rows of 7 runs. A run has 3 bytes. Runs begin 8 bytes apart. Rows begin
// `row_bytes` apart.
select_desc short_runs(std::int64_t row_bytes) {
    select_desc desc = dense(data_type::bf16, {300, 7, 3}, {}, {300, 7, 3}, {300, 7, 3});
    desc.cond.strides_bytes = {row_bytes, 8, 1};
    return desc;
}

TEST(plan, assembles_short_runs_from_windows) {
    const auto plan = build_plan(short_runs(56), isa::scalar, never);
    const operand_access& cond = plan->shapes[0].access[op_cond];
    EXPECT_EQ(cond.kind, access_kind::gather);
    EXPECT_EQ(cond.layout.windows.count, 3)
        << "up to 6 runs, 43 bytes of cond, make a 16-byte register";
    EXPECT_EQ(plan->windows_end[op_cond], 299 * 56 + 6 * 8 + 3);
}

TEST(plan, windows_do_not_reach_pages_that_may_be_missing) {
    EXPECT_EQ(build_plan(short_runs(8192), isa::scalar, never)->windows_end[op_cond], 0);
}

TEST(plan, streams_from_the_threshold_on) {
    const select_desc desc = dense(data_type::f32, {64}, {64}, {}, {64});
    const std::int64_t moved = 64 + 64 * 4 + 4 + 64 * 4;
    EXPECT_EQ(build_plan(desc, isa::scalar, never)->moved_bytes, moved);
    EXPECT_EQ(build_plan(desc, isa::scalar, moved)->key.store, store_policy::stream);
    EXPECT_EQ(build_plan(desc, isa::scalar, moved + 1)->key.store, store_policy::plain);
}

// If a row has one cond, only one of the row's sources is read. For short rows, the plan counts
// both sources, because short rows share cache lines with adjacent rows.
TEST(plan, counts_one_source_if_a_row_has_one_cond) {
    const auto moved = [](std::int64_t columns) {
        const dims shape{64, columns};
        const select_desc desc = dense(data_type::f32, {64, 1}, shape, shape, shape);
        return build_plan(desc, isa::scalar, never)->moved_bytes;
    };
    EXPECT_EQ(moved(1000), 64 + 2 * 64 * 1000 * 4);
    EXPECT_EQ(moved(30), 64 + 3 * 64 * 30 * 4);
}

// Short rows that end within cache lines use plain stores, because streaming stores would write
// partial lines.
TEST(plan, does_not_stream_short_rows_that_end_within_lines) {
    const auto stores = [](std::int64_t columns, std::int64_t row_elems) {
        const dims shape{4096, columns};
        select_desc desc = dense(data_type::bf16, {1}, shape, {}, shape);
        desc.dst.strides_bytes = {2 * row_elems, 2};
        return build_plan(desc, isa::scalar, 1 << 10)->key.store;
    };
    EXPECT_EQ(stores(64, 67), store_policy::plain);
    EXPECT_EQ(stores(64, 96), store_policy::stream);
    EXPECT_EQ(stores(600, 603), store_policy::stream);
}

// Chunks have whole steps and are as equal as possible. A chunk has at least one step, even if a
// step exceeds the limit.
TEST(plan, cuts_loops_in_chunks_of_whole_steps) {
    EXPECT_EQ(chunk_of(100, 100, 8), 100);
    EXPECT_EQ(chunk_of(100, 60, 8), 56);
    EXPECT_EQ(chunk_of(100, 3, 8), 8);
    EXPECT_EQ(chunk_of(5, 3, 8), 5);
}

// Heads share a mask of 1 MB, which must not be fetched once per head.
TEST(plan, keeps_a_shared_mask_in_cache) {
    const dims scores{2, 12, 1024, 1024};
    const auto plan = build_plan(dense(data_type::f32, {1, 1, 1024, 1024}, scores, {}, scores),
                                 isa::scalar, never);
    ASSERT_EQ(plan->grid.size(), 2);
    EXPECT_EQ(plan->grid[0].stride_bytes[op_cond], 0) << to_string(*plan);
}

TEST(plan, scratch_has_room_for_every_width) {
    for (const data_type type :
         {data_type::u8, data_type::bf16, data_type::f32, data_type::f64, data_type::complex128}) {
        select_desc desc = dense(type, {300, 300}, {300, 300}, {300, 300}, {300, 300});
        const auto width = static_cast<std::int64_t>(width_bytes(type));
        for (tensor_desc* tensor : {&desc.src_0, &desc.src_1})
            tensor->strides_bytes = {width, 300 * width};
        desc.cond.strides_bytes = {1, 300};
        desc.dst.strides_bytes = {1000 * width, 3 * width};
        const auto plan = build_plan(desc, isa::scalar, never);
        EXPECT_LE(plan->buffer_offset[op_dst] + plan->shapes[0].access[op_dst].buffer_bytes,
                  max_scratch_bytes)
            << to_string(*plan);
    }
}

TEST(plan_cache, gives_the_same_plan_for_the_same_descriptor) {
    const select_desc desc = dense(data_type::f32, {7, 5}, {7, 5}, {5}, {7, 5});
    EXPECT_EQ(make_select_plan(desc), make_select_plan(desc));
    const select_desc other = dense(data_type::bf16, {7, 5}, {7, 5}, {5}, {7, 5});
    EXPECT_NE(make_select_plan(desc), make_select_plan(other));
}

TEST(plan_cache, answers_after_thousands_of_descriptors) {
    const auto first = make_select_plan(dense(data_type::u8, {9}, {9}, {9}, {9}));
    for (std::int64_t n = 10; n < 3000; ++n) {
        const auto plan = make_select_plan(dense(data_type::u8, {n}, {n}, {n}, {n}));
        ASSERT_EQ(plan->nest.elements, n);
    }
    EXPECT_EQ(first->nest.elements, 9); // a plan in use outlives its cache entry
}

// Forks while other threads compile. An alarm ends a child that hangs.
TEST(plan_cache, works_in_the_child_of_a_fork) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer does not support fork in a process with several threads";
#endif
    const select_desc desc = dense(data_type::u8, {9}, {9}, {9}, {9});
    std::atomic<bool> done{false};
    const auto compile = [&] {
        while (!done) make_select_plan(desc);
    };
    std::jthread first(compile), second(compile);
    int failures = 0;
    for (int i = 0; i < 100 && failures == 0; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(make_select_plan(desc) ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        failures += status != 0;
    }
    done = true;
    EXPECT_EQ(failures, 0);
}

} // namespace
} // namespace maskwise
