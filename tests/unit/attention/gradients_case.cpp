#include "unit/attention/gradients_case.hpp"

#include "attention/run_attention.hpp"
#include "exec/parts.hpp"
#include "support/grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace maskwise::test {
namespace {

std::vector<double> random_numbers(generator& random, std::int64_t count) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(draw_number(random, -1, 1));
    return numbers;
}

extent_list extents_of(const attention_case& problem, const attention_tensor& tensor,
                       bool has_own_heads) {
    extent_list extents = problem.outer();
    if (has_own_heads) extents.back() = tensor.elements.extents.end()[-3];
    extents.insert(extents.end(), tensor.elements.extents.end() - 2, tensor.elements.extents.end());
    return extents;
}

// The loss: the sum of dst times its gradient. Ignores NaN.
double loss(const gradients_case& problem) {
    const std::vector<double> dst = expected(problem.attention).dst;
    double sum = 0;
    for (std::size_t i = 0; i < dst.size(); ++i)
        if (!std::isnan(dst[i])) sum += problem.dst.values[i] * dst[i];
    return sum;
}

// Returns the loss's derivative along a direction in one operand, by central differences.
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
    const extent_list &from = gradient.elements.extents, &to = operand.elements.extents;
    std::vector<double> sums(operand.values.size());
    const std::vector<double> numbers = gradient.read();
    const extent_list strides = dense_view(nullptr, from, 1).strides_bytes;
    walk<2>(from, {strides, broadcast_strides(to, dense_view(nullptr, to, 1).strides_bytes, from)},
            [&](const auto& offsets) {
                sums[static_cast<std::size_t>(offsets[1])] +=
                    numbers[static_cast<std::size_t>(offsets[0])];
            });
    return sums;
}

double largest(const std::vector<double>& numbers) {
    double most = 0;
    for (const double number : numbers)
        if (std::isfinite(number)) most = std::max(most, std::abs(number));
    return most;
}

// The largest row norm. Ignores NaN.
double largest_norm(const attention_tensor& tensor) {
    const auto columns = static_cast<std::size_t>(tensor.elements.extents.back());
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

// Returns the summed relative rounding errors of products, weights and dst.
double relative_error(const gradients_case& problem) {
    double error = 2 * largest(expected(problem.attention).statistics_error);
    const auto add = [&](data_type type) {
        error += type == data_type::bf16 ? 0x1p-8 : type == data_type::f16 ? 0x1p-11 : 0x1p-20;
    };
    add(problem.attention.dst.type);
    if (problem.attention.query.type == data_type::bf16) add(data_type::bf16);
    return error;
}

// The allowed error of a gradient before its elements are rounded.
double allowed(const gradients_case& problem, const checked_operand& which) {
    const attention_case& attention = problem.attention;
    const double dst = largest_norm(problem.dst);
    const double product = 2 * dst * largest_norm(attention.value);
    const double scale =
        attention.desc.scale.value_or(1 / std::sqrt(static_cast<float>(std::max<std::int64_t>(
                                              1, attention.key.elements.extents.back()))));
    const std::string_view name = which.name;
    double term = product;
    if (name == "query") term *= std::abs(scale) * largest(attention.key.values);
    if (name == "key") term *= std::abs(scale) * largest(attention.query.values);
    if (name == "value") term = dst;
    const auto elements = static_cast<double>((problem.*which.gradient).read().size());
    const auto rows = static_cast<double>(count_of(attention.dst.elements.extents)) /
                      static_cast<double>(attention.dst.elements.extents.back());
    const double added = name == "query" ? 1 : std::max(1.0, rows / std::max(1.0, elements / 64));
    return relative_error(problem) * term * 4 * std::sqrt(added) + 1e-7;
}

double rounding_of(data_type type) {
    return type == data_type::bf16 ? 0x1p-8 : type == data_type::f16 ? 0x1p-11 : 0x1p-23;
}

// Returns "" if the gradient along the direction is right.
std::string check_derivative(gradients_case& problem, const checked_operand& which,
                             const std::vector<double>& gradient,
                             const std::vector<double>& direction) {
    const double wanted = difference(problem, which, direction);
    double actual = 0, size = 0, count = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        if (direction[i] == 0) continue;
        actual += direction[i] * gradient[i];
        size += std::abs(direction[i] * gradient[i]);
        count += direction[i] * direction[i];
    }
    const double error = allowed(problem, which) * std::sqrt(count) +
                         size * rounding_of((problem.*which.gradient).type) +
                         1e-6 * std::abs(wanted);
    if (std::abs(actual - wanted) <= error) return {};
    return std::string(which.name) + ": " + std::to_string(actual) + ", expected " +
           std::to_string(wanted) + ", allowed " + std::to_string(error);
}

// Checks three single elements, then one direction that changes every element.
std::string check_gradient(generator& random, gradients_case& problem,
                           const checked_operand& which) {
    if (!(problem.*which.gradient).exists()) return {};
    const std::vector<double> gradient =
        summed(problem.*which.gradient, problem.attention.*which.operand);
    if (gradient.empty()) return {};
    std::vector<double> direction(gradient.size());
    for (int i = 0; i < 3; ++i) {
        const auto element = static_cast<std::size_t>(draw(random, 0, std::ssize(gradient) - 1));
        direction[element] = 1;
        const std::string wrong = check_derivative(problem, which, gradient, direction);
        if (!wrong.empty()) return wrong + ", element " + std::to_string(element);
        direction[element] = 0;
    }
    for (double& number : direction) number = one_in(random, 2) ? 1 : -1;
    return check_derivative(problem, which, gradient, direction);
}

// Whether central differences can check the gradients. A NaN row has no derivative, nor has a score
// that a large bias absorbs in f32.
bool has_derivatives(const attention_case& problem) {
    const float fill = problem.desc.fill;
    const bool has_nan = std::ranges::any_of(problem.query.values, [](double x) { return x != x; });
    const bool has_lowest = std::ranges::any_of(
        problem.bias.values, [](double bias) { return bias <= -1e9 && std::isfinite(bias); });
    const bool has_heads =
        !problem.desc.grouped_queries ||
        problem.key.elements.extents.end()[-3] == problem.value.elements.extents.end()[-3];
    return !has_nan && !has_lowest && has_heads && !std::isnan(fill) &&
           fill < std::numeric_limits<float>::infinity() &&
           !(problem.desc.bias_on_fill && std::isfinite(fill) && problem.bias.exists());
}

} // namespace

gradients_case with_gradients(generator& random, attention_case problem) {
    gradients_case result{std::move(problem), {}, {}, {}, {}, {}, {}};
    attention_case& attention = result.attention;
    const auto random_layout = [&] { return one_in(random, 3) ? layout::any : layout::dense; };
    const data_type type = attention.query.type;
    if (!attention.statistics.exists()) {
        extent_list rows = attention.dst.elements.extents;
        rows.pop_back();
        lay_out(random, attention.statistics, data_type::f32, rows, random_layout());
    }
    lay_out(random, result.dst, attention.dst.type, attention.dst.elements.extents,
            random_layout());
    result.dst.fill(random_numbers(random, count_of(result.dst.elements.extents)));
    const auto lay_out_gradient = [&](attention_tensor& gradient, const attention_tensor& operand,
                                      bool has_own_heads) {
        lay_out(random, gradient, one_in(random, 2) ? data_type::f32 : type,
                extents_of(attention, operand, has_own_heads), random_layout());
    };
    const bool grouped = attention.desc.grouped_queries;
    lay_out_gradient(result.query, attention.query, false);
    lay_out_gradient(result.key, attention.key, grouped);
    lay_out_gradient(result.value, attention.value, grouped);
    if (attention.bias.exists())
        lay_out(random, result.bias, data_type::f32, attention.bias.elements.extents,
                random_layout());
    if (attention.sinks.exists())
        lay_out(random, result.sinks, data_type::f32, attention.sinks.elements.extents,
                random_layout());
    attention.describe();
    return result;
}

gradients_case make_gradients_case(generator& random) {
    while (true) {
        attention_case attention = make_attention_case(random, true);
        if (!has_derivatives(attention)) continue;
        attention.desc.order = attention_order::tiles;
        attention.desc.nan_as_zero = false;
        attention.desc.inf_as_zero = true;
        attention.describe();
        return with_gradients(random, std::move(attention));
    }
}

parallel_loop calling_thread_of(int threads) {
    parallel_loop loop = calling_thread();
    loop.threads = threads;
    return loop;
}

void run(const gradients_case& problem, const kernel_table& target, int threads) {
    const parallel_loop loop = calling_thread_of(threads);
    const auto attention = make_tile_plan(problem.attention.desc, target);
    run_attention(*attention, problem.attention.operands(), &loop);
    const auto gradients = make_gradients_plan(problem.desc(), target);
    run_gradients(*gradients, problem.operands(), &loop);
}

std::string run_checked(generator& random, const gradients_case& problem,
                        const kernel_table& target) {
    std::vector<std::vector<std::byte>> before;
    for (const checked_operand& which : gradient_operands)
        before.push_back(copy_memory(problem.*which.gradient));
    const input_memory inputs = copy_inputs(problem.attention);
    run(problem, target, static_cast<int>(draw(random, 1, 3)));
    if (copy_inputs(problem.attention) != inputs) return "an input was written";
    for (std::size_t i = 0; i < std::size(gradient_operands); ++i)
        if (!is_untouched_around(problem.*gradient_operands[i].gradient, before[i]))
            return "bytes around the gradient of " + std::string(gradient_operands[i].name) +
                   " were written";
    return {};
}

std::string check_gradients(generator& random, gradients_case& problem,
                            const kernel_table& target) {
    std::string wrong = run_checked(random, problem, target);
    for (const checked_operand& which : gradient_operands)
        if (wrong.empty()) wrong = check_gradient(random, problem, which);
    return wrong.empty() ? wrong : wrong + ' ' + to_string(problem.attention);
}

} // namespace maskwise::test
