// Tests attention's threads, loops, memory and errors through the public API.
// test_failing_attention.cpp tests failing allocations.

#include "maskwise/attention_gradients.hpp"
#include "support/attention_case.hpp"
#include "support/texts.hpp"
#include "support/threads_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace maskwise {
namespace {

using test::attention_case;
using test::extent_list;
using test::loop_of;

void expect_right(const attention_case& problem, const parallel_loop& loop) {
    const test::output_memory before = test::copy_outputs(problem);
    compile(problem.desc).execute(problem.operands(), loop);
    EXPECT_EQ(test::compare(problem, test::expected(problem), before), "") << to_string(problem);
}

TEST(attention_threads, runs_on_the_callers_loop) {
    std::atomic<std::int64_t> calls = 0;
    expect_right(test::plain_case({2, 3, 200, 16}, {2, 3, 200, 16}, {2, 3, 200, 16}, 1),
                 loop_of(4, &calls));
    EXPECT_EQ(calls, 4);
}

TEST(attention_threads, share_the_keys_of_few_queries) {
    for (const std::int64_t rows : {1, 3, 40})
        for (const auto& rules : {test::boundaries[0], test::boundaries[2]}) {
            std::atomic<std::int64_t> calls = 0;
            attention_case problem =
                test::plain_case({2, rows, 16}, {2, 5000, 16}, {2, 5000, 16}, 2);
            problem.rules = rules;
            expect_right(problem, loop_of(5, &calls));
            EXPECT_GT(calls, 5) << "a second round merges the slices";
        }
}

// With a mask per sequence or head, row tiles have unequal work, and some have none.
TEST(attention_threads, share_the_keys_of_uneven_masks) {
    for (const int threads : {3, 24}) {
        attention_case problem =
            test::plain_case({3, 2, 70, 16}, {3, 2, 2100, 16}, {3, 2, 2100, 16}, 9);
        problem.rules = mask_rules{.from_end = true, .causal = true, .lengths = {2100, 0, 300}};
        expect_right(problem, loop_of(threads));
        problem = test::plain_case({3, 70, 16}, {3, 2100, 16}, {3, 2100, 16}, 10);
        std::vector<double> unmasked(3 * 2100, 0);
        std::fill_n(unmasked.begin(), 2100, 1);
        std::fill_n(unmasked.begin() + 2 * 2100 + 700, 90, 1);
        test::set_cond(problem, {3, 1, 2100}, unmasked);
        expect_right(problem, loop_of(threads));
    }
}

TEST(attention_threads, shared_keys_may_all_be_masked) {
    for (const float fill : {-std::numeric_limits<float>::infinity(), -2.0F}) {
        attention_case problem = test::plain_case({1, 1, 16}, {1, 5000, 16}, {1, 5000, 16}, 3);
        std::vector<double> unmasked(5000, 0);
        std::fill_n(unmasked.begin() + 1000, 700, 1);
        test::set_cond(problem, {5000}, unmasked);
        problem.desc.fill = fill;
        expect_right(problem, loop_of(4));
    }
}

// Several threads execute the plan with separate operands, alternately on the library's threads and
// on a parallel_loop.
void expect_shareable(const extent_list& query, const extent_list& key) {
    std::vector<attention_case> cases;
    std::vector<test::output_memory> before;
    for (unsigned seed = 4; seed < 8; ++seed) {
        cases.push_back(test::plain_case(query, key, key, seed));
        std::vector<double> unmasked(static_cast<std::size_t>(key[1]), 1);
        std::fill_n(unmasked.begin() + 10 * seed, 100, 0);
        test::set_cond(cases.back(), {key[1]}, unmasked);
        before.push_back(test::copy_outputs(cases.back()));
    }
    const attention_plan plan = compile(cases[0].desc);
    {
        std::vector<std::jthread> threads;
        for (const attention_case& problem : cases)
            threads.emplace_back([&] {
                for (int i = 0; i < 10; ++i) {
                    plan.execute(problem.operands());
                    plan.execute(problem.operands(), loop_of(3));
                }
            });
    }
    for (std::size_t i = 0; i < cases.size(); ++i)
        EXPECT_EQ(test::compare(cases[i], test::expected(cases[i]), before[i]), "");
}

TEST(attention_threads, many_may_execute_one_plan) {
    expect_shareable({4, 100, 32}, {4, 300, 32});
    expect_shareable({2, 1, 16}, {2, 3000, 16});
}

// Returns the gradients of query, key and value, concatenated.
std::vector<float> gradients_of(const attention_gradients_plan& plan, const attention_case& problem,
                                const parallel_loop* loop) {
    std::vector<float> gradients(3 * problem.query.values.size());
    float* const first = gradients.data();
    const auto count = static_cast<std::ptrdiff_t>(problem.query.values.size());
    const attention_gradients_operands operands{problem.operands(), problem.query.elements.data,
                                                first, first + count, first + 2 * count};
    loop == nullptr ? plan.execute(operands) : plan.execute(operands, *loop);
    return gradients;
}

TEST(attention_threads, many_may_execute_one_plan_of_gradients) {
    attention_case problem = test::plain_case({2, 200, 16}, {2, 200, 16}, {2, 200, 16}, 11);
    test::generator random(12);
    lay_out(random, problem.statistics, data_type::f32, {2, 200}, test::layout::dense);
    problem.rules = mask_rules{.causal = true};
    problem.describe();
    compile(problem.desc).execute(problem.operands());
    const attention_gradients_plan plan = compile(attention_gradients_desc{problem.desc});
    const parallel_loop alone = loop_of(1), several = loop_of(3);
    const std::vector<float> expected = gradients_of(plan, problem, &alone);
    std::vector<std::jthread> threads;
    for (const parallel_loop* loop :
         {&several, &several, static_cast<const parallel_loop*>(nullptr)})
        threads.emplace_back([&, loop] {
            for (int i = 0; i < 5; ++i) EXPECT_EQ(gradients_of(plan, problem, loop), expected);
        });
}

TEST(attention_threads, passes_on_exceptions_of_the_loop) {
    const attention_case problem = test::plain_case({8, 64, 16}, {8, 64, 16}, {8, 64, 16}, 6);
    const parallel_loop failing{2, [](std::int64_t, const std::function<void(std::int64_t)>&) {
                                    throw std::runtime_error("no threads today");
                                }};
    const attention_plan plan = compile(problem.desc);
    EXPECT_THROW(plan.execute(problem.operands(), failing), std::runtime_error);
    expect_right(problem, loop_of(2));
}

TEST(attention_threads, needs_little_scratch) {
    attention_desc desc;
    desc.query = desc.key = desc.value = {data_type::f32, {1, 12, 4096, 64}};
    desc.cond = {data_type::boolean, {4096, 4096}};
    EXPECT_LE(compile(desc).scratch_bytes(2), 2 << 20);
}

void expect_refused(const attention_desc& desc, const std::string& words) {
    EXPECT_TRUE(test::has(test::refusal<error>([&] { compile(desc); }), {words}));
}

attention_desc small_desc() {
    attention_desc desc;
    desc.query = desc.key = desc.value = {data_type::f32, {2, 8, 4}};
    return desc;
}

TEST(attention_errors, name_the_operand_and_its_values) {
    attention_desc desc = small_desc();
    desc.query.type = data_type::f64;
    expect_refused(desc, "query is f64");
    desc = small_desc();
    desc.key.type = data_type::bf16;
    expect_refused(desc, "key is bf16");
    desc = small_desc();
    desc.key.extents = {2, 8, 5};
    expect_refused(desc, "{2,8,4} and key {2,8,5}: the depths differ");
    desc = small_desc();
    desc.value.extents = {2, 9, 4};
    expect_refused(desc, "key {2,8,4} and value {2,9,4}");
    desc = small_desc();
    desc.key.extents = desc.value.extents = {3, 8, 4};
    expect_refused(desc, "do not broadcast");
    desc.grouped_queries = true;
    expect_refused(desc, "the heads are no multiple");
    desc = small_desc();
    desc.cond = {data_type::boolean, {8, 7}};
    expect_refused(desc, "cond of shape {8,7}");
    desc = small_desc();
    desc.cond = {data_type::f32, {8, 8}};
    expect_refused(desc, "cond is f32");
    desc = small_desc();
    desc.bias = {data_type::f32, {9, 8}};
    expect_refused(desc, "bias of shape {9,8}");
    desc = small_desc();
    desc.query.extents = {8};
    expect_refused(desc, "query");
    desc = small_desc();
    desc.dst = {data_type::i32, {2, 8, 4}};
    expect_refused(desc, "dst is i32");
    desc = small_desc();
    desc.dst = {data_type::f32, {8, 4}};
    expect_refused(desc, "dst is {8,4}, expected {2,8,4}");
    desc = small_desc();
    desc.dst = {data_type::f32, {2, 8, 4}, {0, 16, 4}};
    expect_refused(desc, "strides in bytes {0,16,4}) may have elements that overlap");
    desc.dst = {data_type::f32, {2, 8, 4}, {64, 16, 4}};
    expect_refused(desc, "strides in bytes {64,16,4}) may have elements that overlap");
    desc.dst = {data_type::f32, {2, 8, 4}, {16, 32, 4}}; // heads are adjacent columns
    EXPECT_NO_THROW(compile(desc));
    desc = small_desc();
    desc.query.strides_bytes = {4};
    expect_refused(desc, "query of shape {2,8,4} has strides {4}");
}

TEST(attention_errors, accept_an_empty_dst_with_zero_strides) {
    attention_desc desc = small_desc();
    desc.query.extents = {2, 0, 4};
    desc.dst = {data_type::f32, {2, 0, 4}, {0, 0, 0}};
    EXPECT_NO_THROW(compile(desc));
}

TEST(attention_errors, refuse_null_addresses_and_loops_without_threads) {
    const attention_case problem = test::plain_case({2, 8, 4}, {2, 8, 4}, {2, 8, 4}, 7);
    attention_operands operands = problem.operands();
    operands.value = nullptr;
    EXPECT_THROW(compile(problem.desc).execute(operands), argument_error);
    EXPECT_THROW(compile(problem.desc).execute(problem.operands(), parallel_loop{0, {}}),
                 argument_error);
}

TEST(attention_errors, name_an_unknown_order) {
    attention_desc order = small_desc();
    order.order = static_cast<attention_order>(78);
    expect_refused(order, "78");
}

TEST(attention_text, describes_the_computation) {
    const attention_plan plan = compile(small_desc());
    EXPECT_TRUE(test::has(to_string(plan), {"8 queries x 8 keys, depth 4"}));
    EXPECT_TRUE(test::has(explain(plan), {"8 queries x 8 keys, depth 4", "bytes of scratch"}));
    EXPECT_EQ(plan.dst().extents, (dims{2, 8, 4}));
}

TEST(attention_text, names_only_present_operands) {
    attention_desc desc = small_desc();
    const auto text = [&desc] {
        const attention_plan plan = compile(desc);
        return to_string(plan) + explain(plan);
    };
    for (const char* const word : {", soft cap", ", bias", ", cond", "\nbias f32"})
        EXPECT_FALSE(test::has(text(), {word})) << word;
    desc.soft_cap = 30;
    desc.bias = {data_type::f32, {8, 8}};
    desc.cond = {data_type::boolean, {8, 8}};
    EXPECT_TRUE(test::has(text(), {", soft cap", ", bias", ", cond", "\nbias f32 {8,8}",
                                   "\ncond boolean {8,8}", "query f32"}));
}

} // namespace
} // namespace maskwise
