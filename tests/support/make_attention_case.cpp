#include "support/attention_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace maskwise::test {
namespace {

std::int64_t width_of(data_type type) {
    return width_bytes(element_of(type));
}

std::vector<double> normal_numbers(generator& random, std::int64_t count, double deviation) {
    std::normal_distribution<double> normal(0, deviation);
    std::vector<double> numbers(static_cast<std::size_t>(count));
    for (double& number : numbers) number = normal(random);
    return numbers;
}

// Draws 1 to 8, 1 to 70, 60 to 200, or a number within 1 of a multiple of 16 up to 96.
std::int64_t draw_count(generator& random) {
    switch (draw(random, 0, 3)) {
    case 0:
        return draw(random, 1, 8);
    case 1:
        return 16 * draw(random, 1, 6) + draw(random, -1, 1);
    case 2:
        return draw(random, 1, 70);
    default:
        return draw(random, 60, 200);
    }
}

std::int64_t draw_depth(generator& random) {
    constexpr std::array<std::int64_t, 8> usual{8, 16, 32, 64, 64, 80, 96, 128};
    if (one_in(random, 2)) return draw(random, 1, 40);
    return usual[static_cast<std::size_t>(draw(random, 0, 7))];
}

struct drawn_shapes {
    extent_list outer; // of dst
    std::int64_t rows, keys, depth, columns;
    bool grouped = false;
};

// Draws extents of up to 70, around the sizes of tiles. Sometimes draws 1020 keys or more, so that
// threads split the keys.
drawn_shapes draw_small_matrices(generator& random) {
    const auto around = [&] {
        return one_in(random, 2) ? draw(random, 1, 20) : draw(random, 1, 70);
    };
    drawn_shapes shapes{{}, around(), around(), draw(random, 1, 18), draw(random, 1, 18)};
    if (one_in(random, 40)) shapes.keys = draw(random, 1020, 1200);
    if (shapes.keys > 70) shapes.rows = draw(random, 1, 4);
    return shapes;
}

drawn_shapes draw_matrices(generator& random) {
    return {{}, draw_count(random), draw_count(random), draw_depth(random), draw_depth(random)};
}

drawn_shapes draw_shapes(generator& random, bool is_small) {
    drawn_shapes shapes = is_small ? draw_small_matrices(random) : draw_matrices(random);
    for (std::int64_t rank = draw(random, 0, is_small ? 2 : 3); rank > 0; --rank)
        shapes.outer.push_back(draw(random, 1, is_small ? 2 : 3));
    shapes.grouped = !shapes.outer.empty() && one_in(random, 3);
    if (shapes.grouped) shapes.outer.back() = draw(random, 1, 2) * 2;
    if (one_in(random, 25)) shapes.keys = 0;
    if (one_in(random, 40)) shapes.rows = 0;
    if (one_in(random, 40)) shapes.columns = 0;
    if (one_in(random, 40)) shapes.depth = 0;
    return shapes;
}

// Returns {rows, columns} after the outer dimensions. Unless `is_whole`, may drop outer dimensions
// or set them to 1.
extent_list with_matrix(generator& random, extent_list outer, bool is_whole, std::int64_t rows,
                        std::int64_t columns) {
    if (!is_whole) {
        const std::int64_t dropped = one_in(random, 4) ? draw(random, 0, std::ssize(outer)) : 0;
        outer.erase(outer.begin(), outer.begin() + dropped);
        for (std::int64_t& extent : outer)
            if (one_in(random, 4)) extent = 1;
    }
    outer.push_back(rows);
    outer.push_back(columns);
    return outer;
}

extent_list keys_shape(generator& random, const drawn_shapes& shapes, std::int64_t columns) {
    if (!shapes.grouped) return with_matrix(random, shapes.outer, false, shapes.keys, columns);
    extent_list outer = shapes.outer;
    outer.back() /= one_in(random, 2) ? 2 : 1;
    for (auto extent = outer.begin(); extent != outer.end() - 1; ++extent)
        if (one_in(random, 4)) *extent = 1;
    return with_matrix(random, outer, true, shapes.keys, columns);
}

// Draws a mask, in which 0 masks. The mask is key padding, blocks, noise, a triangle, all zeros or
// without zeros. Sometimes every fifth row is fully masked.
std::vector<double> draw_mask(generator& random, const extent_list& extents) {
    const std::int64_t rows = extents.end()[-2], keys = extents.end()[-1];
    const std::int64_t kind = draw(random, 0, 5), length = draw(random, 0, keys);
    const std::int64_t block = draw(random, 8, 70), density = draw(random, 1, 10);
    const auto blocks = random();
    std::vector<double> keep;
    for (std::int64_t i = 0; i < count_of(extents); ++i) {
        const std::int64_t key = i % keys, row = i / keys % rows;
        const auto bit = static_cast<unsigned>((row / block * 7 + key / block) % 64);
        const bool kept[] = {
            key < length, (blocks >> bit & 1) != 0, draw(random, 1, 10) <= density, true, false,
            key <= row};
        keep.push_back(kept[kind] ? static_cast<double>(draw(random, 1, 255)) : 0);
    }
    if (one_in(random, 3) && rows > 1)
        for (std::int64_t i = 0; i < count_of(extents); ++i)
            if (i / keys % 5 == 2) keep[static_cast<std::size_t>(i)] = 0;
    return keep;
}

float draw_fill(generator& random) {
    using limits = std::numeric_limits<float>;
    constexpr std::array others{-1e9F, -4.0F, 0.0F, 2.5F, 90.0F, limits::lowest(), limits::max()};
    if (!one_in(random, 3)) return -limits::infinity();
    if (one_in(random, 10)) return one_in(random, 2) ? limits::infinity() : limits::quiet_NaN();
    return others[static_cast<std::size_t>(draw(random, 0, std::ssize(others) - 1))];
}

double lowest_of(data_type type) {
    return type == data_type::bf16  ? -0x1.FEp127
           : type == data_type::f16 ? -65504
                                    : std::numeric_limits<float>::lowest();
}

// Draws a bias. Some elements or rows may be -infinity, the lowest number or another low number.
// Other elements are random numbers or 0.
std::vector<double> draw_bias(generator& random, data_type type, const extent_list& extents) {
    std::vector<double> bias = normal_numbers(random, count_of(extents), one_in(random, 3) ? 0 : 2);
    if (one_in(random, 2)) return bias;
    constexpr std::array lower{-30.0, -200.0, -1e4};
    const double masked = one_in(random, 3)   ? -std::numeric_limits<double>::infinity()
                          : one_in(random, 2) ? lowest_of(type)
                                              : lower[static_cast<std::size_t>(draw(random, 0, 2))];
    const std::vector<double> keep = draw_mask(random, extents);
    for (std::size_t i = 0; i < bias.size(); ++i)
        if (keep[i] == 0) bias[i] = masked;
    return bias;
}

extent_list mask_shape(generator& random, const drawn_shapes& shapes) {
    extent_list extents = with_matrix(random, shapes.outer, false, shapes.rows, shapes.keys);
    if (one_in(random, 4)) extents.end()[-2] = 1;
    if (one_in(random, 10)) extents.end()[-1] = 1;
    return extents;
}

layout draw_layout(generator& random) {
    return one_in(random, 3) ? layout::repeated : layout::dense;
}

// Some slopes are so steep that distant tiles have no weight.
void draw_slopes(generator& random, attention_case& problem) {
    const extent_list outer = problem.outer();
    const std::int64_t heads = outer.empty() ? 1 : outer.back();
    const std::int64_t count = one_in(random, 2) ? heads : problem.shape().sequences * heads;
    for (const double slope : normal_numbers(random, count, one_in(random, 3) ? 5 : 0.2))
        problem.rules->slopes.push_back(
            static_cast<float>(one_in(random, 8) ? slope : std::abs(slope)));
}

void draw_masks(generator& random, const drawn_shapes& shapes, attention_case& problem) {
    if (one_in(random, 2)) {
        lay_out(random, problem.cond, data_type::boolean, mask_shape(random, shapes),
                draw_layout(random));
        problem.cond.fill(draw_mask(random, problem.cond.elements.extents));
    }
    if (one_in(random, 4)) {
        constexpr std::array types{data_type::f32, data_type::bf16, data_type::f16};
        lay_out(random, problem.bias, types[static_cast<std::size_t>(draw(random, 0, 2))],
                mask_shape(random, shapes), draw_layout(random));
        problem.bias.fill(draw_bias(random, problem.bias.type, problem.bias.elements.extents));
    }
    if (one_in(random, 3))
        problem.rules = boundaries[static_cast<std::size_t>(draw(random, 1, 2))];
    else if (one_in(random, 2))
        problem.rules = draw_rules(random, problem.shape());
    if (problem.rules && !problem.bias.exists() && one_in(random, 3)) draw_slopes(random, problem);
    problem.desc.fill = draw_fill(random);
    problem.desc.inf_as_zero = one_in(random, 2);
    problem.desc.nan_as_zero = one_in(random, 5);
    problem.desc.cond_masks = one_in(random, 4);
    problem.desc.bias_on_fill = one_in(random, 3);
    if (one_in(random, 6)) problem.desc.soft_cap = one_in(random, 3) ? -30.0F : 5.0F;
    constexpr std::array scales{0.3F, -0.2F, 0.0F, 20.0F};
    if (one_in(random, 4))
        problem.desc.scale = scales[static_cast<std::size_t>(draw(random, 0, 3))];
}

void draw_sinks(generator& random, const drawn_shapes& shapes, attention_case& problem) {
    constexpr std::array types{data_type::f32, data_type::bf16, data_type::f16};
    lay_out(random, problem.sinks, types[static_cast<std::size_t>(draw(random, 0, 2))],
            with_matrix(random, shapes.outer, false, 1, 1), draw_layout(random));
    problem.sinks.elements.extents.resize(problem.sinks.elements.extents.size() - 2);
    problem.sinks.elements.strides_bytes.resize(problem.sinks.elements.extents.size());
    std::vector<double> sinks = normal_numbers(random, count_of(problem.sinks.elements.extents), 3);
    if (one_in(random, 6) && !sinks.empty()) sinks[0] = -std::numeric_limits<double>::infinity();
    problem.sinks.fill(sinks);
}

// Keys or values that are masked for every query row become NaN, because they must not affect
// results.
void spoil_masked(attention_tensor& tensor, const std::vector<bool>& kept) {
    const extent_list& extents = tensor.elements.extents;
    for (std::size_t d = 0; d < extents.size(); ++d)
        if (extents[d] > 1 && tensor.elements.strides_bytes[d] == 0) return;
    std::vector<double> values = tensor.values;
    const auto columns = static_cast<std::size_t>(extents.back());
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!kept[i / columns % kept.size()]) values[i] = std::numeric_limits<double>::quiet_NaN();
    tensor.fill(values);
}

void spoil_masked_keys(attention_case& problem) {
    spoil_masked(problem.key, kept_keys(problem, true));
    if (problem.desc.fill == -std::numeric_limits<float>::infinity())
        spoil_masked(problem.value, kept_keys(problem, false));
}

// Whether an element of the bias is so low that Maskwise may skip its tile.
bool has_masking_bias(const attention_case& problem) {
    return std::ranges::any_of(problem.bias.values, [](double bias) { return bias <= -65504; });
}

// Sets one element to NaN. Only its row of the result may become NaN.
void spoil_one_query(generator& random, attention_tensor& query) {
    std::vector<double> values = query.values;
    if (values.empty()) return;
    const auto index = static_cast<std::size_t>(draw(random, 0, std::ssize(values) - 1));
    values[index] = std::numeric_limits<double>::quiet_NaN();
    query.fill(values);
}

void draw_tensors(generator& random, const drawn_shapes& shapes, attention_case& problem) {
    constexpr std::array types{data_type::f32, data_type::f32, data_type::bf16, data_type::f16};
    const data_type type = types[static_cast<std::size_t>(draw(random, 0, 3))];
    const auto put = [&](attention_tensor& tensor, const extent_list& extents) {
        lay_out(random, tensor, type, extents, draw_layout(random));
        tensor.fill(normal_numbers(random, count_of(extents), 1));
    };
    put(problem.query, with_matrix(random, shapes.outer, true, shapes.rows, shapes.depth));
    const extent_list keys = keys_shape(random, shapes, shapes.depth);
    lay_out(random, problem.key, type, keys,
            one_in(random, 3) ? layout::transposed : draw_layout(random));
    problem.key.fill(normal_numbers(random, count_of(keys), 1));
    put(problem.value, keys_shape(random, shapes, shapes.columns));
    lay_out(random, problem.dst, one_in(random, 4) ? data_type::f32 : type,
            with_matrix(random, shapes.outer, true, shapes.rows, shapes.columns),
            one_in(random, 3) ? layout::any : layout::dense);
    if (!one_in(random, 3)) return;
    extent_list statistics = shapes.outer;
    statistics.push_back(shapes.rows);
    lay_out(random, problem.statistics, data_type::f32, statistics,
            one_in(random, 2) ? layout::any : layout::dense);
}

// A view with its last two dimensions transposed in memory.
view transposed_view(extent_list extents, std::int64_t width) {
    std::swap(extents.end()[-1], extents.end()[-2]);
    view transposed = dense_view(nullptr, extents, width);
    std::swap(transposed.extents.end()[-1], transposed.extents.end()[-2]);
    std::swap(transposed.strides_bytes.end()[-1], transposed.strides_bytes.end()[-2]);
    return transposed;
}

} // namespace

void lay_out(generator& random, attention_tensor& tensor, data_type type,
             const extent_list& extents, layout how) {
    tensor.type = type;
    tensor.elements = how == layout::transposed ? transposed_view(extents, width_of(type))
                                                : dense_view(nullptr, extents, width_of(type));
    if (how == layout::any || how == layout::repeated)
        lay_out(random, tensor.elements, width_of(type));
    if (how == layout::repeated)
        for (std::int64_t& stride : tensor.elements.strides_bytes)
            if (one_in(random, 30)) stride = 0;
    tensor.memory = place(random, tensor.elements, width_of(type));
}

attention_case make_attention_case(generator& random, bool is_small) {
    const drawn_shapes shapes = draw_shapes(random, is_small);
    attention_case problem;
    problem.desc.grouped_queries = shapes.grouped;
    draw_tensors(random, shapes, problem);
    draw_masks(random, shapes, problem);
    if (one_in(random, 5)) draw_sinks(random, shapes, problem);
    if (one_in(random, 6)) spoil_masked_keys(problem);
    if (one_in(random, 30) && !has_masking_bias(problem)) spoil_one_query(random, problem.query);
    if (one_in(random, 3))
        problem.desc.order =
            one_in(random, 2) ? attention_order::operators : attention_order::fixed;
    problem.describe();
    return problem;
}

attention_case plain_case(const extent_list& query, const extent_list& key,
                          const extent_list& value, unsigned seed) {
    generator random(seed);
    attention_case problem;
    const auto put = [&](attention_tensor& tensor, const extent_list& extents) {
        lay_out(random, tensor, data_type::f32, extents, layout::dense);
        tensor.fill(normal_numbers(random, count_of(extents), 1));
    };
    put(problem.query, query);
    put(problem.key, key);
    put(problem.value, value);
    extent_list dst = query, statistics = query;
    dst.back() = value.back();
    statistics.pop_back();
    lay_out(random, problem.dst, data_type::f32, dst, layout::dense);
    lay_out(random, problem.statistics, data_type::f32, statistics, layout::dense);
    problem.describe();
    return problem;
}

void set_bias(attention_case& problem, data_type type, const extent_list& extents,
              const std::vector<double>& bias) {
    generator random(1);
    lay_out(random, problem.bias, type, extents, layout::dense);
    problem.bias.fill(bias);
    problem.describe();
}

void set_cond(attention_case& problem, const extent_list& extents,
              const std::vector<double>& keep) {
    generator random(1);
    lay_out(random, problem.cond, data_type::boolean, extents, layout::dense);
    problem.cond.fill(keep);
    problem.describe();
}

std::string to_string(const attention_case& problem) {
    const auto one = [](const char* name, const attention_tensor& tensor) {
        if (!tensor.exists()) return std::string();
        const tensor_desc desc = tensor.desc();
        return std::string(name) + ' ' + std::string(to_string(desc.type)) +
               maskwise::to_string(desc.extents) + maskwise::to_string(desc.strides_bytes) + ' ';
    };
    const attention_desc& desc = problem.desc;
    return one("query", problem.query) + one("key", problem.key) + one("value", problem.value) +
           one("cond", problem.cond) + one("bias", problem.bias) + one("sinks", problem.sinks) +
           one("dst", problem.dst) + one("statistics", problem.statistics) + "fill " +
           std::to_string(desc.fill) + " soft_cap " + std::to_string(desc.soft_cap) +
           " inf_as_zero " + std::to_string(desc.inf_as_zero) + " nan_as_zero " +
           std::to_string(desc.nan_as_zero) + " cond_masks " + std::to_string(desc.cond_masks) +
           " bias_on_fill " + std::to_string(desc.bias_on_fill) + " grouped " +
           std::to_string(desc.grouped_queries) + " scale " +
           (desc.scale ? std::to_string(*desc.scale) : "default") +
           (problem.rules ? ", rules: " + to_string(*problem.rules) : "");
}

} // namespace maskwise::test
