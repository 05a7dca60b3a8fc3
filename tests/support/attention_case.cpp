#include "support/attention_case.hpp"

#include "support/grid.hpp"
#include "support/operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>

namespace maskwise::test {
namespace {

template <typename Visit>
void for_each_element(const view& elements, Visit visit) {
    walk<1>(elements.extents, {elements.strides_bytes},
            [&](const auto& offset) { visit(elements.data + offset[0]); });
}

dims to_dims(const std::vector<std::int64_t>& values) {
    return dims(std::span<const std::int64_t>(values));
}

grid grid_of(const attention_tensor& tensor) {
    return {tensor.elements.extents, tensor.values};
}

// For grouped queries, the heads of `a` that share a head of `b` get a separate dimension.
grid multiply_heads(const attention_case& problem, grid a, grid b, bool transposes_b,
                    double negligible = -1) {
    if (!problem.desc.grouped_queries)
        return multiply_matrices(a, b, false, transposes_b, negligible).value();
    const std::int64_t all_heads = a.extents.end()[-3], heads = b.extents.end()[-3];
    a.extents.end()[-3] = all_heads / heads;
    a.extents.insert(a.extents.end() - 3, heads);
    b.extents.insert(b.extents.end() - 2, 1);
    grid product = multiply_matrices(a, b, false, transposes_b, negligible).value();
    product.extents.erase(product.extents.end() - 3);
    product.extents.end()[-3] = all_heads;
    return product;
}

extent_list extents_of_scores(const attention_case& problem) {
    extent_list extents = problem.outer();
    extents.push_back(problem.query.elements.extents.end()[-2]);
    extents.push_back(problem.key.elements.extents.end()[-2]);
    return extents;
}

void mask_by_rules(const attention_case& problem, const extent_list& extents, grid& unmasked) {
    const rule_shape shape = problem.shape();
    const std::int64_t places = shape.rows * shape.keys;
    const std::int64_t each = shape.sequences == 0 ? 0 : count_of(extents) / shape.sequences;
    for (std::int64_t i = 0; i < count_of(extents); ++i)
        if (!keeps(*problem.rules, shape, i / each, i % places / shape.keys, i % shape.keys))
            unmasked.values[static_cast<std::size_t>(i)] = 0;
}

// The bias that ALiBi slopes add to each score.
grid biases_of_slopes(const attention_case& problem, grid biases) {
    const rule_shape shape = problem.shape();
    const auto& slopes = problem.rules->slopes;
    const std::int64_t heads = problem.outer().empty() ? 1 : problem.outer().back();
    const std::int64_t places = shape.rows * shape.keys;
    const std::int64_t each =
        std::ssize(biases.values) / std::max<std::int64_t>(shape.sequences, 1);
    for (std::int64_t i = 0; i < std::ssize(biases.values); ++i) {
        const std::int64_t sequence = i / each, head = i / places % heads;
        const std::int64_t index = std::ssize(slopes) == heads ? head : sequence * heads + head;
        const std::int64_t position =
            position_of(*problem.rules, shape, sequence, i % places / shape.keys);
        biases.values[static_cast<std::size_t>(i)] =
            -double{slopes[static_cast<std::size_t>(index)]} *
            static_cast<double>(std::abs(position - i % shape.keys));
    }
    return biases;
}

// Returns, for each score, 0 if the rules (or cond, with `by_cond`) mask the score, else 1.
grid unmasked_scores(const attention_case& problem, bool by_cond = true) {
    const extent_list extents = extents_of_scores(problem);
    grid unmasked{extents, std::vector<double>(static_cast<std::size_t>(count_of(extents)), 1)};
    if (problem.rules) mask_by_rules(problem, extents, unmasked);
    if (!problem.cond.exists() || !by_cond) return unmasked;
    return combine(unmasked, grid_of(problem.cond), [&](double is_unmasked, double cond) {
        return (cond != 0) != problem.desc.cond_masks ? is_unmasked : 0.0;
    });
}

// The masked scores. `sizes`: for each unmasked score, the sum of its terms' absolute values.
struct attention_scores {
    grid values, sizes;
};

attention_scores scores_of(const attention_case& problem) {
    const attention_desc& desc = problem.desc;
    const auto depth = static_cast<double>(problem.key.elements.extents.back());
    const double scale = depth == 0 ? 1 : desc.scale ? *desc.scale : 1 / std::sqrt(depth);
    const grid nothing = combine(unmasked_scores(problem), {{}, {0}}, std::multiplies<>());
    const auto whole = [&](const grid& part) {
        return combine(part, nothing, [](double value, double) { return value; });
    };
    const auto product = [&](auto change) {
        grid query = grid_of(problem.query), key = grid_of(problem.key);
        for (double& value : query.values) value = change(value * scale);
        for (double& value : key.values) value = change(value);
        return whole(multiply_heads(problem, query, key, true));
    };
    attention_scores scores{product([](double value) { return value; }),
                            product([](double value) { return std::abs(value); })};
    const grid unmasked = unmasked_scores(problem);
    const bool has_slopes = problem.rules && !problem.rules->slopes.empty();
    const grid biases = problem.bias.exists() ? whole(grid_of(problem.bias))
                        : has_slopes          ? biases_of_slopes(problem, nothing)
                                              : nothing;
    for (std::size_t i = 0; i < scores.values.values.size(); ++i) {
        double &score = scores.values.values[i], &size = scores.sizes.values[i];
        const double bias = biases.values[i];
        const bool masks_by_bias = bias <= -1e30;
        size = unmasked.values[i] != 0 && !masks_by_bias ? size + std::abs(bias) : 0;
        // Adds in f32, where a large fill absorbs the bias, and the lowest bias absorbs the score.
        if (unmasked.values[i] == 0) {
            score =
                desc.fill + (desc.bias_on_fill && !has_slopes ? static_cast<float>(bias) : 0.0F);
            continue;
        }
        if (desc.soft_cap != 0)
            score = desc.soft_cap * compute(operation::tanh, score / desc.soft_cap);
        score = masks_by_bias ? static_cast<float>(score) + static_cast<float>(bias) : score + bias;
    }
    return scores;
}

// The sink of each row of each head.
std::vector<double> sinks_of_rows(const attention_case& problem) {
    extent_list extents = problem.outer();
    extents.push_back(problem.query.elements.extents.end()[-2]);
    const grid nothing{extents, std::vector<double>(static_cast<std::size_t>(count_of(extents)))};
    grid sinks = grid_of(problem.sinks);
    sinks.extents.push_back(1);
    return combine(nothing, sinks, std::plus<>()).values;
}

// SoftMax with the sink as one more score.
double soft_max_with(double sink, double* weights, std::size_t keys, bool makes_zeros) {
    std::vector<double> row(weights, weights + keys);
    row.push_back(sink);
    const double statistics = soft_max(row.data(), keys + 1, 1, makes_zeros);
    std::copy_n(row.begin(), keys, weights);
    return statistics;
}

// The error of f32 sums in a row of scores with these sizes. The logarithm of the sum of weights
// has the same error.
double score_error(const attention_case& problem, std::span<const double> sizes) {
    double largest = 0;
    for (const double size : sizes) largest = std::max(largest, size);
    const auto depth = static_cast<double>(problem.key.elements.extents.back());
    // Equal weights, added one by one as in a tile, are all rounded in the same direction.
    const auto added = static_cast<double>(std::min<std::size_t>(sizes.size(), 100));
    return 1e-6 + 0x1p-24 * (added + (6 + depth / 8) * largest);
}

} // namespace

tensor_desc attention_tensor::desc() const {
    if (!exists()) return {};
    return {type, to_dims(elements.extents), to_dims(elements.strides_bytes)};
}

void attention_tensor::fill(const std::vector<double>& wanted) {
    // true may be any byte but 0.
    const element written = type == data_type::boolean ? element::u8 : element_of(type);
    auto next = wanted.begin();
    for_each_element(elements, [&](std::byte* to) { store(to, written, *next++); });
    values = read();
}

std::vector<double> attention_tensor::read() const {
    std::vector<double> all;
    for_each_element(elements,
                     [&](const std::byte* from) { all.push_back(load(from, element_of(type))); });
    return all;
}

void attention_case::describe() {
    desc.query = query.desc();
    desc.key = key.desc();
    desc.value = value.desc();
    desc.cond = cond.desc();
    desc.bias = bias.desc();
    desc.sinks = sinks.desc();
    desc.dst = dst.desc();
    desc.statistics = statistics.desc();
}

attention_operands attention_case::operands() const {
    return {query.elements.data,      key.elements.data,   value.elements.data,
            cond.elements.data,       bias.elements.data,  dst.elements.data,
            statistics.elements.data, sinks.elements.data, rules ? &*rules : nullptr};
}

rule_shape attention_case::shape() const {
    return {outer().empty() ? 1 : outer()[0], query.elements.extents.end()[-2],
            key.elements.extents.end()[-2]};
}

extent_list attention_case::outer() const {
    return {dst.elements.extents.begin(), dst.elements.extents.end() - 2};
}

wanted_attention expected(const attention_case& problem) {
    auto [scores, sizes] = scores_of(problem);
    const auto keys = static_cast<std::size_t>(scores.extents.back());
    const auto rows =
        static_cast<std::size_t>(count_of(problem.outer()) * scores.extents.end()[-2]);
    const bool makes_zeros = problem.desc.inf_as_zero || problem.desc.nan_as_zero;
    std::vector<double> sinks;
    if (problem.sinks.exists()) sinks = sinks_of_rows(problem);
    wanted_attention wanted;
    for (std::size_t row = 0; row < rows; ++row) {
        double* const weights = scores.values.data() + row * keys;
        const double sink =
            problem.sinks.exists() ? sinks[row] : -std::numeric_limits<double>::infinity();
        wanted.statistics.push_back(keys == 0 ? sink
                                              : soft_max_with(sink, weights, keys, makes_zeros));
        wanted.statistics_error.push_back(
            score_error(problem, std::span(sizes.values).subspan(row * keys, keys)));
    }
    if (problem.desc.nan_as_zero)
        for (double& weight : scores.values)
            if (std::isnan(weight)) weight = 0;
    grid value = grid_of(problem.value);
    wanted.dst = multiply_heads(problem, scores, value, false, 0).values;
    for (double& each : value.values) each = std::abs(each);
    wanted.dst_error = multiply_heads(problem, scores, value, false, 0).values;
    // bf16 products use weights rounded to bf16. If all keys have equal values, every addition
    // rounds in the same direction.
    const double rounded = problem.query.type == data_type::bf16 ? 0x1p-8 : 0;
    const double added = 0x1p-25 * static_cast<double>(keys);
    const std::size_t columns = rows == 0 ? 1 : wanted.dst.size() / rows;
    // A weight below 2^-126 may be 0. With a sink, all weights may be that small.
    const double least = problem.sinks.exists() ? 1e-36 : 0;
    for (std::size_t i = 0; i < wanted.dst_error.size(); ++i)
        wanted.dst_error[i] =
            wanted.dst_error[i] * (wanted.statistics_error[i / columns] + rounded + added) + least;
    return wanted;
}

std::vector<bool> kept_keys(const attention_case& problem, bool by_cond) {
    const grid places = unmasked_scores(problem, by_cond);
    std::vector<bool> unmasked(static_cast<std::size_t>(places.extents.back()), false);
    for (std::size_t i = 0; i < places.values.size(); ++i)
        if (places.values[i] != 0) unmasked[i % unmasked.size()] = true;
    return unmasked;
}

std::vector<std::byte> copy_memory(const attention_tensor& tensor) {
    const auto bytes = tensor.memory.bytes();
    return {bytes.begin(), bytes.end()};
}

input_memory copy_inputs(const attention_case& problem) {
    input_memory all;
    for (const auto* input : {&problem.query, &problem.key, &problem.value, &problem.cond,
                              &problem.bias, &problem.sinks})
        all.push_back(copy_memory(*input));
    return all;
}

output_memory copy_outputs(const attention_case& problem) {
    return {copy_memory(problem.dst), copy_memory(problem.statistics)};
}

bool is_untouched_around(const attention_tensor& tensor, std::vector<std::byte> before) {
    if (!tensor.exists()) return true;
    const auto width = static_cast<std::size_t>(width_bytes(element_of(tensor.type)));
    for_each_element(tensor.elements, [&](const std::byte* element) {
        std::memcpy(before.data() + (element - tensor.memory.data()), element, width);
    });
    return tensor.memory.intact() && std::ranges::equal(before, tensor.memory.bytes());
}

namespace {

// Slightly more than half a unit in the last place of the type.
double rounding(double wanted, data_type type) {
    if (type == data_type::bf16) return 0x1.01p-8 * std::abs(wanted) + 1e-38;
    if (type == data_type::f16) return 0x1.01p-11 * std::abs(wanted) + 0x1p-25;
    return 0x1.01p-24 * std::abs(wanted) + 1e-38;
}

std::string compare_numbers(const char* name, const attention_tensor& got,
                            const std::vector<double>& wanted, const std::vector<double>& errors) {
    const std::vector<double> actual = got.read();
    if (actual.size() != wanted.size()) return std::string(name) + " has a wrong size";
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const double off = std::abs(actual[i] - wanted[i]);
        const double allowed = errors[i] + rounding(wanted[i], got.type);
        const bool is_right = std::isnan(wanted[i])   ? std::isnan(actual[i])
                              : std::isinf(wanted[i]) ? actual[i] == wanted[i]
                                                      : off == 0 || off <= allowed;
        if (!is_right)
            return std::string(name) + " element " + std::to_string(i) + " is " +
                   std::to_string(actual[i]) + ", expected " + std::to_string(wanted[i]) +
                   ", off by " + std::to_string(off / allowed) + " times the tolerance";
    }
    return "";
}

} // namespace

std::string compare(const attention_case& problem, const wanted_attention& wanted,
                    output_memory before) {
    std::string text = compare_numbers("dst", problem.dst, wanted.dst, wanted.dst_error);
    if (!is_untouched_around(problem.dst, before.dst)) text += " bytes around dst were written";
    if (!problem.statistics.exists()) return text;
    text += compare_numbers(" statistics", problem.statistics, wanted.statistics,
                            wanted.statistics_error);
    if (!is_untouched_around(problem.statistics, before.statistics))
        text += " bytes around statistics were written";
    return text;
}

} // namespace maskwise::test
