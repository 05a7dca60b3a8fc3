// Gradients against central differences of attention's definition in double precision.

#include "attention/run_attention.hpp"
#include "attention/run_gradients.hpp"
#include "exec/parts.hpp"
#include "support/attention_case.hpp"
#include "support/grid.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace maskwise {
namespace {

using test::attention_case;
using test::attention_tensor;
using test::extent_list;

// A case, the gradient of dst, and the gradients that it has.
struct gradients_case {
    attention_case attention;
    attention_tensor dst, query, key, value, bias, sinks; // gradients

    attention_gradients_desc desc() const {
        return {attention.desc, dst.desc(),  query.desc(), key.desc(),
                value.desc(),   bias.desc(), sinks.desc()};
    }
    attention_gradients_operands operands() const {
        return {attention.operands(), dst.at.data,  query.at.data, key.at.data,
                value.at.data,        bias.at.data, sinks.at.data};
    }
};

std::vector<double> random_numbers(test::generator& random, std::int64_t count) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(draw_number(random, -1, 1));
    return numbers;
}

extent_list extents_of(const attention_case& problem, const attention_tensor& tensor,
                       bool has_own_heads) {
    extent_list extents = problem.outer();
    if (has_own_heads) extents.back() = tensor.at.extents.end()[-3];
    extents.insert(extents.end(), tensor.at.extents.end() - 2, tensor.at.extents.end());
    return extents;
}

gradients_case with_gradients(test::generator& random, attention_case problem) {
    gradients_case made{std::move(problem), {}, {}, {}, {}, {}, {}};
    attention_case& attention = made.attention;
    const auto how = [&] { return one_in(random, 3) ? test::layout::any : test::layout::dense; };
    const data_type type = attention.query.type;
    if (!attention.statistics.exists()) {
        extent_list rows = attention.dst.at.extents;
        rows.pop_back();
        lay_out(random, attention.statistics, data_type::f32, rows, how());
    }
    lay_out(random, made.dst, attention.dst.type, attention.dst.at.extents, how());
    made.dst.fill(random_numbers(random, test::count_of(made.dst.at.extents)));
    const auto put = [&](attention_tensor& gradient, const attention_tensor& operand,
                         bool has_own_heads) {
        lay_out(random, gradient, one_in(random, 2) ? data_type::f32 : type,
                extents_of(attention, operand, has_own_heads), how());
    };
    const bool grouped = attention.desc.grouped_queries;
    put(made.query, attention.query, false);
    put(made.key, attention.key, grouped);
    put(made.value, attention.value, grouped);
    if (attention.bias.exists())
        lay_out(random, made.bias, data_type::f32, attention.bias.at.extents, how());
    if (attention.sinks.exists())
        lay_out(random, made.sinks, data_type::f32, attention.sinks.at.extents, how());
    attention.describe();
    return made;
}

parallel_loop calling_thread_of(int threads) {
    parallel_loop loop = calling_thread();
    loop.threads = threads;
    return loop;
}

void run(const gradients_case& problem, const kernel_table& target, int threads = 1) {
    const parallel_loop loop = calling_thread_of(threads);
    const auto attention = make_tile_plan(problem.attention.desc, target);
    run_attention(*attention, problem.attention.operands(), &loop);
    const auto gradients = make_gradients_plan(problem.desc(), target);
    run_gradients(*gradients, problem.operands(), &loop);
}

// The function of which these are gradients.
double loss(const gradients_case& problem) {
    const std::vector<double> dst = test::expected(problem.attention).dst;
    double sum = 0;
    for (std::size_t i = 0; i < dst.size(); ++i)
        if (!std::isnan(dst[i])) sum += problem.dst.values[i] * dst[i];
    return sum;
}

// An operand, and its gradient, summed to the operand's shape.
struct checked_operand {
    const char* name;
    attention_tensor attention_case::*operand;
    attention_tensor gradients_case::*gradient;
};
constexpr checked_operand operands[] = {
    {"query", &attention_case::query, &gradients_case::query},
    {"key", &attention_case::key, &gradients_case::key},
    {"value", &attention_case::value, &gradients_case::value},
    {"bias", &attention_case::bias, &gradients_case::bias},
    {"sinks", &attention_case::sinks, &gradients_case::sinks},
};

// The derivative of the loss along a direction of one operand.
double difference(gradients_case& problem, const checked_operand& which,
                  const std::vector<double>& direction) {
    constexpr double step = 1e-5;
    std::vector<double>& values = (problem.attention.*which.operand).values;
    const std::vector<double> before = values;
    double sides[2];
    for (const int side : {0, 1}) {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = before[i] + (side == 0 ? step : -step) * direction[i];
        sides[side] = loss(problem);
    }
    values = before;
    return (sides[0] - sides[1]) / (2 * step);
}

std::vector<double> summed(const attention_tensor& gradient, const attention_tensor& operand) {
    const extent_list &from = gradient.at.extents, &to = operand.at.extents;
    std::vector<double> sums(operand.values.size());
    const std::vector<double> numbers = gradient.read();
    const extent_list strides = test::dense_view(nullptr, from, 1).strides_bytes;
    test::walk<2>(
        from,
        {strides,
         test::broadcast_strides(to, test::dense_view(nullptr, to, 1).strides_bytes, from)},
        [&](const auto& at) {
            sums[static_cast<std::size_t>(at[1])] += numbers[static_cast<std::size_t>(at[0])];
        });
    return sums;
}

double largest(const std::vector<double>& numbers) {
    double most = 0;
    for (const double number : numbers)
        if (std::isfinite(number)) most = std::max(most, std::abs(number));
    return most;
}

// The largest norm of a row.
double largest_norm(const attention_tensor& tensor) {
    const auto columns = static_cast<std::size_t>(tensor.at.extents.back());
    double most = 0;
    for (std::size_t i = 0; i < tensor.values.size(); i += columns) {
        double sum = 0;
        for (std::size_t c = 0; c < columns; ++c)
            if (!std::isnan(tensor.values[i + c]))
                sum += tensor.values[i + c] * tensor.values[i + c];
        most = std::max(most, std::sqrt(sum));
    }
    return most;
}

// The rounding of products, weights, and dst, from which deltas are computed.
double relative_error(const gradients_case& problem) {
    double error = 2 * largest(test::expected(problem.attention).statistics_error);
    const auto add = [&](data_type type) {
        error += type == data_type::bf16 ? 0x1p-8 : type == data_type::f16 ? 0x1p-11 : 0x1p-20;
    };
    add(problem.attention.dst.type);
    if (problem.attention.query.type == data_type::bf16) add(data_type::bf16);
    return error;
}

// How far a gradient may be off, beside the rounding of its own elements.
double allowed(const gradients_case& problem, const checked_operand& which) {
    const attention_case& attention = problem.attention;
    const double dst = largest_norm(problem.dst);
    const double product = 2 * dst * largest_norm(attention.value);
    const double scale = attention.desc.scale.value_or(
        1 /
        std::sqrt(static_cast<float>(std::max<std::int64_t>(1, attention.key.at.extents.back()))));
    const std::string_view name = which.name;
    double term = product;
    if (name == "query") term *= std::abs(scale) * largest(attention.key.values);
    if (name == "key") term *= std::abs(scale) * largest(attention.query.values);
    if (name == "value") term = dst;
    const auto elements = static_cast<double>((problem.*which.gradient).read().size());
    const auto rows = static_cast<double>(test::count_of(attention.dst.at.extents)) /
                      static_cast<double>(attention.dst.at.extents.back());
    const double added = name == "query" ? 1 : std::max(1.0, rows / std::max(1.0, elements / 64));
    return relative_error(problem) * term * 4 * std::sqrt(added) + 1e-7;
}

double rounding_of(data_type type) {
    return type == data_type::bf16 ? 0x1p-8 : type == data_type::f16 ? 0x1p-11 : 0x1p-23;
}

void expect_derivative(gradients_case& problem, const checked_operand& which,
                       const std::vector<double>& gradient, const std::vector<double>& direction,
                       const std::string& words) {
    double wanted = difference(problem, which, direction), actual = 0, size = 0, count = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        if (direction[i] == 0) continue;
        actual += direction[i] * gradient[i];
        size += std::abs(direction[i] * gradient[i]);
        count += direction[i] * direction[i];
    }
    const double error = allowed(problem, which) * std::sqrt(count) +
                         size * rounding_of((problem.*which.gradient).type) +
                         1e-6 * std::abs(wanted);
    ASSERT_NEAR(actual, wanted, error) << which.name << ' ' << words;
}

// Single elements, and one direction through all of them.
void expect_gradient(test::generator& random, gradients_case& problem, const checked_operand& which,
                     const std::string& words) {
    if (!(problem.*which.gradient).exists()) return;
    const std::vector<double> gradient =
        summed(problem.*which.gradient, problem.attention.*which.operand);
    if (gradient.empty()) return;
    std::vector<double> direction(gradient.size());
    for (int i = 0; i < 3; ++i) {
        const auto element = static_cast<std::size_t>(draw(random, 0, std::ssize(gradient) - 1));
        direction[element] = 1;
        expect_derivative(problem, which, gradient, direction, words);
        direction[element] = 0;
    }
    for (double& number : direction) number = one_in(random, 2) ? 1 : -1;
    expect_derivative(problem, which, gradient, direction, words);
}

std::vector<std::byte> copy_memory(const attention_tensor& tensor) {
    const auto bytes = tensor.memory.bytes();
    return {bytes.begin(), bytes.end()};
}

// Bytes around the elements stay as they were.
void expect_untouched(const attention_tensor& tensor, std::vector<std::byte> before) {
    if (!tensor.exists()) return;
    const auto width = static_cast<std::size_t>(test::width_bytes(test::element_of(tensor.type)));
    test::walk<1>(tensor.at.extents, {tensor.at.strides_bytes}, [&](const auto& at) {
        const std::byte* const element = tensor.at.data + at[0];
        std::copy_n(element, width, before.begin() + (element - tensor.memory.data()));
    });
    EXPECT_TRUE(tensor.memory.intact());
    EXPECT_TRUE(std::ranges::equal(before, tensor.memory.bytes()));
}

void expect_gradients(test::generator& random, gradients_case& problem, const kernel_table& target,
                      const std::string& words) {
    std::vector<std::vector<std::byte>> before;
    for (const checked_operand& which : operands)
        before.push_back(copy_memory(problem.*which.gradient));
    const test::input_memory inputs = test::copy_inputs(problem.attention);
    run(problem, target, static_cast<int>(draw(random, 1, 3)));
    EXPECT_EQ(test::copy_inputs(problem.attention), inputs);
    for (std::size_t i = 0; i < std::size(operands); ++i) {
        expect_untouched(problem.*operands[i].gradient, before[i]);
        expect_gradient(random, problem, operands[i], words);
        if (testing::Test::HasFailure()) return;
    }
}

// Scores that f32 swallows have no derivative, and neither have rows of NaN.
bool has_derivatives(const attention_case& problem) {
    const float fill = problem.desc.fill;
    const bool has_nan = std::ranges::any_of(problem.query.values, [](double x) { return x != x; });
    const bool has_lowest = std::ranges::any_of(
        problem.bias.values, [](double bias) { return bias <= -1e9 && std::isfinite(bias); });
    const bool has_heads = !problem.desc.grouped_queries ||
                           problem.key.at.extents.end()[-3] == problem.value.at.extents.end()[-3];
    return !has_nan && !has_lowest && has_heads && !std::isnan(fill) &&
           fill < std::numeric_limits<float>::infinity() &&
           !(problem.desc.bias_on_fill && std::isfinite(fill) && problem.bias.exists());
}

attention_case draw_attention(test::generator& random) {
    while (true) {
        attention_case problem = test::make_attention_case(random, true);
        if (!has_derivatives(problem)) continue;
        problem.desc.order = attention_order::tiles;
        problem.desc.nan_as_zero = false;
        problem.desc.inf_as_zero = true;
        problem.describe();
        return problem;
    }
}

TEST(attention_gradients, are_derivatives_of_random_attentions) {
    for (const kernel_table* target : attention_targets()) {
        test::generator random(test::base_seed());
        for (int i = 0; i < 150; ++i) {
            gradients_case problem = with_gradients(random, draw_attention(random));
            expect_gradients(random, problem, *target,
                             name_of(target) + " case " + std::to_string(i) + ' ' +
                                 to_string(problem.attention));
            if (HasFailure()) return;
        }
    }
}

// Several row tiles and key tiles, and several parts of them.
attention_case large_case(data_type type, unsigned seed) {
    attention_case problem = test::plain_case({2, 150, 34}, {2, 170, 34}, {2, 170, 18}, seed);
    test::generator random(seed);
    for (auto* tensor : {&problem.query, &problem.key, &problem.value}) {
        const std::vector<double> numbers = tensor->values;
        lay_out(random, *tensor, type, tensor->at.extents, test::layout::dense);
        tensor->fill(numbers);
    }
    lay_out(random, problem.dst, type, problem.dst.at.extents, test::layout::dense);
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
            expect_gradients(random, problem, *target, name_of(target));
        }
}

// Statistics of such rows are rounded to multiples of 64.
TEST(attention_gradients, of_rows_that_a_finite_number_masks_are_those_of_equal_weights) {
    for (const kernel_table* target : attention_targets()) {
        test::generator random(4);
        attention_case attention = large_case(data_type::f32, 6);
        const std::int64_t keys = attention.key.at.extents[1];
        std::vector<double> bias;
        for (std::int64_t i = 0; i < 150 * keys; ++i) bias.push_back(i / keys % 4 == 0 ? -1e9 : 0);
        set_bias(attention, data_type::f32, {150, keys}, bias);
        gradients_case problem = with_gradients(random, std::move(attention));
        run(problem, *target);
        const std::vector<double> gradient = problem.value.read();
        // A row of equal weights passes 1 / keys of dst's gradient to each value.
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
        attention.desc.causal = causal_boundary::top_left;
        gradients_case problem = with_gradients(random, std::move(attention));
        const kernel_table& target = *attention_targets().front();
        run(problem, target);
        std::vector<std::vector<double>> alone;
        for (const checked_operand& which : operands)
            if ((problem.*which.gradient).exists())
                alone.push_back((problem.*which.gradient).read());
        for (const int threads : {2, 3, 16}) {
            const parallel_loop loop = calling_thread_of(threads);
            run_gradients(*make_gradients_plan(problem.desc(), target), problem.operands(), &loop);
            std::size_t next = 0;
            for (const checked_operand& which : operands) {
                if (!(problem.*which.gradient).exists()) continue;
                EXPECT_EQ((problem.*which.gradient).read(), alone[next++]) << threads;
            }
        }
    }
}

// Tiles that the attention skips are skipped, too.
TEST(attention_gradients, multiply_only_tiles_that_the_mask_keeps) {
    test::generator random(9);
    gradients_case problem = with_gradients(random, large_case(data_type::f32, 10));
    const auto plan = make_gradients_plan(problem.desc(), *attention_targets().front());
    const auto tiles = [&] {
        const parallel_loop alone = calling_thread();
        const std::int64_t before = plan->attention->computed_tiles;
        run_gradients(*plan, problem.operands(), &alone);
        return plan->attention->computed_tiles - before;
    };
    const std::int64_t all = tiles();
    EXPECT_EQ(all, 2 * plan->attention->row_tiles() * plan->attention->key_tiles());
    problem.attention.rules = mask_rules{};
    problem.attention.rules->lengths = {60, 0};
    EXPECT_EQ(tiles(), plan->attention->row_tiles());
}

TEST(attention_gradients, are_refused_where_they_are_not_defined) {
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
