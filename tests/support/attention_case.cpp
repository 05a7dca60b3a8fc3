#include "support/attention_case.hpp"

#include "support/operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace maskwise::test {
namespace {

// visit(address of the element).
template <typename Visit>
void for_each_element(const view& at, Visit visit) {
    walk<1>(at.extents, {at.strides_bytes},
            [&](const auto& offset) { visit(at.data + offset[0]); });
}

dims to_dims(const std::vector<std::int64_t>& values) {
    return dims(std::span<const std::int64_t>(values));
}

// The matrix that a head of dst reads, of row-major elements; broadcast ones have a step of 0.
struct matrix {
    const double* first = nullptr;
    std::int64_t row_step = 0, column_step = 0;

    double at(std::int64_t row, std::int64_t column) const {
        return first[row * row_step + column * column_step];
    }
};

matrix matrix_of(const attention_tensor& tensor, extent_list head, std::int64_t shared_by) {
    if (!tensor.exists()) return {};
    const view dense = dense_view(nullptr, tensor.at.extents, 1);
    if (shared_by > 1) head.back() /= shared_by;
    head.insert(head.end(), 2, 0);
    const auto step = [&](std::size_t back) {
        const std::size_t rank = dense.extents.size();
        return rank < back || dense.extents[rank - back] == 1 ? 0
                                                              : dense.strides_bytes[rank - back];
    };
    const std::int64_t first = tensor.values.empty() ? 0 : offset_bytes(dense, head);
    return {tensor.values.data() + first, step(2), step(1)};
}

// How many heads of query meet one of that tensor's.
std::int64_t shared_by(const attention_case& what, const attention_tensor& tensor) {
    if (!what.desc.grouped_queries) return 1;
    return what.query.at.extents.end()[-3] / tensor.at.extents.end()[-3];
}

// One head's operands.
struct head_operands {
    const attention_case& what;
    std::int64_t rows, keys, depth, columns;
    matrix query, key, value, cond, bias;

    head_operands(const attention_case& of, const std::vector<std::int64_t>& head)
        : what(of), rows(of.query.at.extents.end()[-2]), keys(of.key.at.extents.end()[-2]),
          depth(of.key.at.extents.back()), columns(of.value.at.extents.back()),
          query(matrix_of(of.query, head, 1)), key(matrix_of(of.key, head, shared_by(of, of.key))),
          value(matrix_of(of.value, head, shared_by(of, of.value))),
          cond(matrix_of(of.cond, head, 1)), bias(matrix_of(of.bias, head, 1)) {}

    bool is_kept(std::int64_t row, std::int64_t k) const {
        const bool is_right = what.desc.causal == causal_boundary::bottom_right;
        if (what.desc.causal != causal_boundary::none && k > row + (is_right ? keys - rows : 0))
            return false;
        return cond.first == nullptr || (cond.at(row, k) != 0) != what.desc.cond_masks;
    }

    double scale() const {
        if (depth == 0) return 1;
        return what.desc.scale ? *what.desc.scale : 1 / std::sqrt(static_cast<double>(depth));
    }

    // In f32: a large fill swallows its bias.
    double masked_score(std::int64_t row, std::int64_t k) const {
        const bool has_bias = what.desc.bias_on_fill && bias.first != nullptr;
        const float on_fill = has_bias ? static_cast<float>(bias.at(row, k)) : 0;
        return static_cast<double>(what.desc.fill + on_fill);
    }

    double score(std::int64_t row, std::int64_t k) const {
        const attention_desc& desc = what.desc;
        if (!is_kept(row, k)) return masked_score(row, k);
        double sum = 0;
        for (std::int64_t d = 0; d < depth; ++d) sum += query.at(row, d) * key.at(k, d) * scale();
        if (desc.soft_cap != 0) sum = desc.soft_cap * compute(operation::tanh, sum / desc.soft_cap);
        if (bias.first == nullptr) return sum;
        // In f32: the lowest number swallows its score.
        if (masks_by_bias(row, k))
            return static_cast<float>(sum) + static_cast<float>(bias.at(row, k));
        return sum + bias.at(row, k);
    }

    bool masks_by_bias(std::int64_t row, std::int64_t k) const { return bias.at(row, k) <= -1e30; }

    // What a sum of f32 may lose in the scores of a row, and so in the logarithms of its weights.
    double score_error(std::int64_t row) const {
        double largest = 0;
        for (std::int64_t k = 0; k < keys; ++k) {
            double size = bias.first == nullptr ? 0 : std::abs(bias.at(row, k));
            if (!is_kept(row, k) || (bias.first != nullptr && masks_by_bias(row, k))) continue;
            for (std::int64_t d = 0; d < depth; ++d)
                size += std::abs(query.at(row, d) * key.at(k, d) * scale());
            largest = std::max(largest, size);
        }
        // Equal weights are all rounded to one side where they are added one by one, as in a tile.
        const auto added = static_cast<double>(std::min<std::int64_t>(keys, 100));
        return 1e-6 + 0x1p-24 * (added + (6 + static_cast<double>(depth) / 8) * largest);
    }

    void add_row(std::int64_t row, wanted_attention& wanted) const {
        std::vector<double> weights;
        for (std::int64_t k = 0; k < keys; ++k) weights.push_back(score(row, k));
        const double error = score_error(row);
        wanted.statistics.push_back(keys == 0
                                        ? -std::numeric_limits<double>::infinity()
                                        : soft_max(weights.data(), weights.size(), 1,
                                                   what.desc.inf_as_zero || what.desc.nan_as_zero));
        if (what.desc.nan_as_zero)
            for (double& weight : weights)
                if (std::isnan(weight)) weight = 0;
        wanted.statistics_error.push_back(error);
        for (std::int64_t c = 0; c < columns; ++c) {
            double sum = 0, size = 0;
            for (std::int64_t k = 0; k < keys; ++k) {
                // A place of weight 0 adds nothing, whatever is there.
                const double weight = weights[static_cast<std::size_t>(k)];
                if (weight != 0) sum += weight * value.at(k, c);
                if (weight != 0) size += weight * std::abs(value.at(k, c));
            }
            wanted.dst.push_back(sum);
            // Products of bf16 take weights that are rounded to it. Equal values of all keys, added
            // one by one, are rounded to one side as well.
            const double rounded = what.query.type == data_type::bf16 ? 0x1p-8 : 0;
            const double added = 0x1p-25 * static_cast<double>(keys);
            wanted.dst_error.push_back((error + rounded + added) * size);
        }
    }
};

template <typename Visit>
void for_each_head(const attention_case& what, Visit visit) {
    const extent_list outer = what.outer();
    if (count_of(outer) == 0) return;
    std::vector<std::int64_t> head(outer.size(), 0);
    do visit(head_operands(what, head));
    while (test::advance(head, outer));
}

} // namespace

tensor_desc attention_tensor::desc() const {
    if (!exists()) return {};
    return {type, to_dims(at.extents), to_dims(at.strides_bytes)};
}

void attention_tensor::fill(const std::vector<double>& wanted) {
    // A boolean is any byte.
    const element written = type == data_type::boolean ? element::u8 : element_of(type);
    auto next = wanted.begin();
    for_each_element(at, [&](std::byte* to) { store(to, written, *next++); });
    values = read();
}

std::vector<double> attention_tensor::read() const {
    std::vector<double> all;
    for_each_element(at,
                     [&](const std::byte* from) { all.push_back(load(from, element_of(type))); });
    return all;
}

void attention_case::describe() {
    desc.query = query.desc();
    desc.key = key.desc();
    desc.value = value.desc();
    desc.cond = cond.desc();
    desc.bias = bias.desc();
    desc.dst = dst.desc();
    desc.statistics = statistics.desc();
}

attention_operands attention_case::operands() const {
    return {query.at.data, key.at.data, value.at.data,     cond.at.data,
            bias.at.data,  dst.at.data, statistics.at.data};
}

extent_list attention_case::outer() const {
    return {dst.at.extents.begin(), dst.at.extents.end() - 2};
}

wanted_attention expected(const attention_case& what) {
    wanted_attention wanted;
    for_each_head(what, [&](const head_operands& head) {
        for (std::int64_t row = 0; row < head.rows; ++row) head.add_row(row, wanted);
    });
    return wanted;
}

std::vector<bool> kept_keys(const attention_case& what) {
    std::vector<bool> kept(static_cast<std::size_t>(what.key.at.extents.end()[-2]), false);
    for_each_head(what, [&](const head_operands& head) {
        for (std::int64_t row = 0; row < head.rows; ++row)
            for (std::int64_t k = 0; k < head.keys; ++k)
                if (head.is_kept(row, k)) kept[static_cast<std::size_t>(k)] = true;
    });
    return kept;
}

input_memory copy_inputs(const attention_case& what) {
    input_memory all;
    for (const auto* input : {&what.query, &what.key, &what.value, &what.cond, &what.bias})
        all.emplace_back(input->memory.bytes().begin(), input->memory.bytes().end());
    return all;
}

output_memory copy_outputs(const attention_case& what) {
    const auto copy = [](const attention_tensor& from) {
        const auto bytes = from.memory.bytes();
        return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    return {copy(what.dst), copy(what.statistics)};
}

namespace {

// Half a unit in the last place of the type.
double rounding(double wanted, data_type type) {
    if (type == data_type::bf16) return 0x1.01p-8 * std::abs(wanted) + 1e-38;
    if (type == data_type::f16) return 0x1.01p-11 * std::abs(wanted) + 0x1p-25;
    return 0x1.01p-24 * std::abs(wanted) + 1e-38;
}

std::string compare_numbers(const char* name, const attention_tensor& got,
                            const std::vector<double>& wanted, const std::vector<double>& errors) {
    const std::vector<double> actual = got.read();
    if (actual.size() != wanted.size()) return std::string(name) + " has another size";
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const double off = std::abs(actual[i] - wanted[i]);
        const double allowed = errors[i] + rounding(wanted[i], got.type);
        const bool is_right = std::isnan(wanted[i])   ? std::isnan(actual[i])
                              : std::isinf(wanted[i]) ? actual[i] == wanted[i]
                                                      : off == 0 || off <= allowed;
        if (!is_right)
            return std::string(name) + " element " + std::to_string(i) + " is " +
                   std::to_string(actual[i]) + ", expected " + std::to_string(wanted[i]) +
                   ", off by " + std::to_string(off / allowed) + " times what is allowed";
    }
    return "";
}

// `before` with the tensor's elements as they are now is the memory as it is now.
bool is_untouched_around(const attention_tensor& tensor, std::vector<std::byte>& before) {
    const auto width = static_cast<std::size_t>(width_bytes(element_of(tensor.type)));
    for_each_element(tensor.at, [&](const std::byte* at) {
        std::memcpy(before.data() + (at - tensor.memory.data()), at, width);
    });
    return tensor.memory.intact() && std::ranges::equal(before, tensor.memory.bytes());
}

} // namespace

std::string compare(const attention_case& what, const wanted_attention& wanted,
                    output_memory before) {
    std::string text = compare_numbers("dst", what.dst, wanted.dst, wanted.dst_error);
    if (!is_untouched_around(what.dst, before.dst)) text += " bytes around dst were written";
    if (!what.statistics.exists()) return text;
    text +=
        compare_numbers(" statistics", what.statistics, wanted.statistics, wanted.statistics_error);
    if (!is_untouched_around(what.statistics, before.statistics))
        text += " bytes around statistics were written";
    return text;
}

} // namespace maskwise::test
