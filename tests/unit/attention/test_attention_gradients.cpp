// Compares gradients with central differences of attention's definition in double precision.

#include "exec/parts.hpp"
#include "unit/attention/attention_targets.hpp"
#include "unit/attention/gradients_case.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace maskwise {
namespace {

using test::attention_case;
using test::calling_thread_of;
using test::check_gradients;
using test::gradients_case;
using test::run;
using test::with_gradients;

TEST(attention_gradients, are_derivatives_of_random_attentions) {
    for (const kernel_table* target : attention_targets()) {
        test::generator random(test::base_seed());
        for (int i = 0; i < 150; ++i) {
            gradients_case problem = test::make_gradients_case(random);
            ASSERT_EQ(check_gradients(random, problem, *target), "")
                << name_of(target) << " case " << i;
        }
    }
}

// A case with several row tiles, key tiles and slices.
attention_case large_case(data_type type, unsigned seed) {
    attention_case problem = test::plain_case({2, 150, 34}, {2, 170, 34}, {2, 170, 18}, seed);
    test::generator random(seed);
    for (auto* tensor : {&problem.query, &problem.key, &problem.value}) {
        const std::vector<double> numbers = tensor->values;
        lay_out(random, *tensor, type, tensor->elements.extents, test::layout::dense);
        tensor->fill(numbers);
    }
    lay_out(random, problem.dst, type, problem.dst.elements.extents, test::layout::dense);
    problem.describe();
    return problem;
}

constexpr data_type types[] = {data_type::f32, data_type::bf16, data_type::f16};

TEST(attention_gradients, are_derivatives_over_several_tiles) {
    mask_rules window, documents;
    window.window = key_window{20, 30, 3};
    documents.documents = {{{0, 40, 0, 60}, {40, 70, 60, 30}, {115, 35, 90, 80}}};
    documents.causal = documents.from_end = documents.in_documents = true;
    for (const kernel_table* target : attention_targets())
        for (const data_type type : types) {
            test::generator random(3);
            attention_case attention = large_case(type, 5);
            attention.rules = type == data_type::f16 ? window : documents;
            gradients_case problem = with_gradients(random, std::move(attention));
            EXPECT_GT(make_gradients_plan(problem.desc(), *target)->parts, 1);
            EXPECT_EQ(check_gradients(random, problem, *target), "") << name_of(target);
        }
}

// f32 rounds the statistics of the masked rows to multiples of 64.
TEST(attention_gradients, use_weights_that_sum_to_1_in_rows_masked_by_a_finite_number) {
    for (const kernel_table* target : attention_targets()) {
        test::generator random(4);
        attention_case attention = large_case(data_type::f32, 6);
        const std::int64_t keys = attention.key.elements.extents[1];
        std::vector<double> bias;
        for (std::int64_t i = 0; i < 150 * keys; ++i) bias.push_back(i / keys % 4 == 0 ? -1e9 : 0);
        set_bias(attention, data_type::f32, {150, keys}, bias);
        gradients_case problem = with_gradients(random, std::move(attention));
        run(problem, *target);
        const std::vector<double> gradient = problem.value.read();
        // Each row's weights sum to 1, so the gradients of value and of dst have equal column sums.
        std::vector<double> sums(18), wanted(18);
        for (std::size_t i = 0; i < problem.dst.values.size(); ++i)
            wanted[i % 18] += problem.dst.values[i];
        for (std::size_t i = 0; i < gradient.size(); ++i) sums[i % 18] += gradient[i];
        for (std::size_t c = 0; c < 18; ++c)
            EXPECT_NEAR(sums[c], wanted[c], 1e-3) << name_of(target);
    }
}

TEST(attention_gradients, do_not_depend_on_the_number_of_threads) {
    for (const data_type type : types) {
        test::generator random(7);
        attention_case attention = large_case(type, 8);
        attention.rules = mask_rules{.causal = true};
        gradients_case problem = with_gradients(random, std::move(attention));
        const kernel_table& target = *attention_targets().front();
        run(problem, target);
        std::vector<std::vector<double>> alone;
        for (const test::checked_operand& which : test::gradient_operands)
            if ((problem.*which.gradient).exists())
                alone.push_back((problem.*which.gradient).read());
        for (const int threads : {2, 3, 16}) {
            const parallel_loop loop = calling_thread_of(threads);
            run_gradients(*make_gradients_plan(problem.desc(), target), problem.operands(), &loop);
            std::size_t next = 0;
            for (const test::checked_operand& which : test::gradient_operands) {
                if (!(problem.*which.gradient).exists()) continue;
                EXPECT_EQ((problem.*which.gradient).read(), alone[next++]) << threads;
            }
        }
    }
}

// Rounding a NaN with a payload of ones to bf16 by adding half a unit would overflow to zero.
TEST(attention_gradients, keep_a_nan_with_a_payload_of_ones) {
    for (const kernel_table* target : attention_targets())
        for (const data_type type : types) {
            test::generator random(13);
            attention_case attention = large_case(type, 14);
            std::vector<double> bias(std::size_t{150} * 170, 0);
            bias[5 * 170 + 7] = std::bit_cast<double>(~std::uint64_t{0});
            test::set_bias(attention, data_type::f32, {150, 170}, bias);
            const gradients_case problem = with_gradients(random, std::move(attention));
            run(problem, *target);
            for (const auto* gradient : {&problem.key, &problem.value})
                for (const double number : gradient->read())
                    ASSERT_TRUE(std::isnan(number)) << name_of(target);
        }
}

TEST(attention_gradients, multiply_only_unmasked_tiles) {
    test::generator random(9);
    gradients_case problem = with_gradients(random, large_case(data_type::f32, 10));
    const auto plan = make_gradients_plan(problem.desc(), *attention_targets().front());
    const auto tiles = [&] {
        const parallel_loop alone = calling_thread();
        const std::int64_t before = plan->attention->computed_tiles;
        run_gradients(*plan, problem.operands(), &alone);
        return plan->attention->computed_tiles - before;
    };
    EXPECT_EQ(tiles(), 2 * plan->attention->row_tiles() * plan->attention->key_tiles());
    problem.attention.rules = mask_rules{};
    problem.attention.rules->lengths = {60, 0};
    EXPECT_EQ(tiles(), plan->attention->row_tiles());
}

TEST(attention_gradients, refuse_invalid_descriptions) {
    test::generator random(11);
    const gradients_case problem = with_gradients(random, large_case(data_type::f32, 12));
    const kernel_table& target = *attention_targets().front();
    const auto refuses = [&](auto change) {
        attention_gradients_desc desc = problem.desc();
        change(desc);
        EXPECT_THROW(make_gradients_plan(desc, target), error);
    };
    refuses([](auto& desc) { desc.attention.order = attention_order::operators; });
    refuses([](auto& desc) { desc.attention.nan_as_zero = true; });
    refuses([](auto& desc) { desc.query_gradient.extents[1] = 7; });
    refuses([](auto& desc) { desc.key_gradient.strides_bytes[0] = 0; });
    refuses([](auto& desc) { desc.value_gradient.type = data_type::i8; });
    refuses([](auto& desc) { desc.bias_gradient = {data_type::f32, {150, 170}}; });
    refuses([](auto& desc) { desc.sinks_gradient = {data_type::f32, {2}}; });
}

} // namespace
} // namespace maskwise
