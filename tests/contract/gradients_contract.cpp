// Training with oneDNN 3.12 or newer: attention with statistics, and gradients computed from the
// statistics. The graphs imitate oneDNN's own cases. Results must match the definition with and
// without the plugin. If oneDNN makes one partition of a graph, the plugin must run that partition
// as a whole. The plugin must not match a graph with another scale or consumer.

#include "cpp_client.hpp"
#include "support/numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#if DNNL_VERSION_MINOR >= 12
namespace maskwise::contract {
namespace {

enum class mask_kind { none, causal, bottom_right, select, add };

struct training_case {
    mask_kind mask = mask_kind::none;
    tensor_type type = f32;
    bool grouped = false;
    bool divides = false; // the scale is a divisor
    float fill = -INFINITY;
    std::int64_t rows = 40;

    std::int64_t heads() const { return grouped ? 3 : 1; } // query heads per KV head
    extents shape(std::int64_t shared, std::int64_t m, std::int64_t n) const {
        return grouped ? extents{2, 2, shared, m, n} : extents{2, 2, m, n};
    }
};

constexpr std::int64_t keys = 48, depth = 16, columns = 16, outer = 4;

enum : std::size_t {
    query,
    key,
    value,
    dst,
    dst_gradient,
    statistics,
    scale,
    fill,
    mask,
    keys_number,
    rows_number,
    query_gradient,
    key_gradient,
    value_gradient,
    other,
    inner // first id of the tensors between operators
};
constexpr std::size_t extra_output = 90;

class builder {
public:
    explicit builder(const training_case& problem) : problem_(problem) {}

    logical_tensor matrix(std::size_t id, std::int64_t m, std::int64_t n, tensor_type type,
                          bool is_shared = false) const {
        return dense(id, problem_.shape(is_shared ? 1 : problem_.heads(), m, n), type);
    }
    logical_tensor scores(std::size_t id, tensor_type type = f32) const {
        return matrix(id, problem_.rows, keys, type);
    }
    logical_tensor rows_of(std::size_t id) const {
        return matrix(id, problem_.rows, depth, problem_.type);
    }
    logical_tensor keys_of(std::size_t id) const {
        return matrix(id, keys, depth, problem_.type, problem_.grouped);
    }
    logical_tensor per_row(std::size_t id) const { return matrix(id, problem_.rows, 1, f32); }
    static logical_tensor number(std::size_t id, tensor_type type = f32) {
        return dense(id, {1}, type);
    }
    std::size_t next() { return inner + ops.size(); }

    logical_tensor add(kind op_kind, const std::vector<logical_tensor>& inputs,
                       const logical_tensor& output) {
        ops.push_back(make(ops.size(), op_kind, inputs, output));
        return output;
    }
    logical_tensor multiply(const logical_tensor& a, const logical_tensor& b,
                            const logical_tensor& output, bool transpose_a, bool transpose_b) {
        add(kind::MatMul, {a, b}, output);
        ops.back().set_attr<bool>(op::attr::transpose_a, transpose_a);
        ops.back().set_attr<bool>(op::attr::transpose_b, transpose_b);
        return output;
    }
    logical_tensor sum(const logical_tensor& input, const logical_tensor& output,
                       std::int64_t axis) {
        add(kind::ReduceSum, {input}, output);
        ops.back().set_attr<std::vector<std::int64_t>>(op::attr::axes, {axis});
        ops.back().set_attr<bool>(op::attr::keep_dims, true);
        return output;
    }
    logical_tensor index(const logical_tensor& source, std::int64_t axis) {
        const auto output = scores(next(), tensor_type::s32);
        add(kind::GenIndex, {source}, output);
        ops.back().set_attr<std::int64_t>(op::attr::axis, axis);
        return output;
    }
    logical_tensor scaled(const logical_tensor& input, std::size_t by = scale) {
        return add(problem_.divides ? kind::Divide : kind::Multiply, {input, number(by)},
                   scores(next()));
    }
    logical_tensor cast(const logical_tensor& input) {
        return problem_.type == f32 ? input
                                    : add(kind::TypeCast, {input}, scores(next(), problem_.type));
    }

    // The scores, scaled and masked.
    logical_tensor masked_scores() {
        const auto product = multiply(rows_of(query), keys_of(key), scores(next()), false, true);
        const auto row = scaled(product);
        if (problem_.mask == mask_kind::none) return row;
        if (problem_.mask == mask_kind::add)
            return add(kind::Add, {row, mask_tensor(problem_.type)}, scores(next()));
        const auto cond = problem_.mask == mask_kind::select ? mask_tensor(boolean) : causal(row);
        return add(kind::Select, {cond, row, number(fill)}, scores(next()));
    }

    std::vector<op> ops;

private:
    logical_tensor mask_tensor(tensor_type type) const {
        extents shape = problem_.shape(1, problem_.rows, keys);
        shape[1] = 1;
        return dense(mask, shape, type);
    }
    logical_tensor causal(const logical_tensor& row) {
        auto row_index = index(row, -2);
        if (problem_.mask == mask_kind::bottom_right) {
            row_index = add(kind::Add, {row_index, number(keys_number, tensor_type::s32)},
                            scores(next(), tensor_type::s32));
            row_index = add(kind::Subtract, {row_index, number(rows_number, tensor_type::s32)},
                            scores(next(), tensor_type::s32));
        }
        const auto column_index = index(row, -1);
        return add(kind::GreaterEqual, {row_index, column_index}, scores(next(), boolean));
    }

    const training_case& problem_;
};

std::vector<op> forward(const training_case& problem) {
    builder graph(problem);
    const auto row = graph.masked_scores();
    const auto weights = graph.scores(graph.next(), problem.type);
    op softmax(graph.ops.size(), kind::SoftMax, {row}, {weights, graph.per_row(statistics)},
               "softmax");
    softmax.set_attr<std::int64_t>(op::attr::axis, -1);
    softmax.set_attr<std::string>(op::attr::mode, "inf_as_zero");
    graph.ops.push_back(softmax);
    graph.multiply(weights, graph.keys_of(value), graph.rows_of(dst), false, false);
    return graph.ops;
}

// Changes of the graph. A graph with a change other than `none` must not match as gradients.
enum class change { none, other_scale, no_scale, other_reader };

std::vector<op> backward(const training_case& problem, change how = change::none) {
    builder graph(problem);
    const auto gradient_of_dst = graph.rows_of(dst_gradient);
    const auto row = graph.masked_scores();
    const auto exponent =
        graph.add(kind::Subtract, {row, graph.per_row(statistics)}, graph.scores(graph.next()));
    const auto weights = graph.add(kind::Exp, {exponent}, graph.scores(graph.next()));
    const auto store_keys = [&](const logical_tensor& a, const logical_tensor& b, std::size_t id) {
        if (!problem.grouped) return graph.multiply(a, b, graph.keys_of(id), true, false);
        const auto whole = graph.multiply(
            a, b, graph.matrix(graph.next(), keys, depth, problem.type), true, false);
        return graph.sum(whole, graph.keys_of(id), 2);
    };
    store_keys(graph.cast(weights), gradient_of_dst, value_gradient);
    const auto products = graph.multiply(gradient_of_dst, graph.keys_of(value),
                                         graph.scores(graph.next()), false, true);
    const auto parts = graph.add(kind::Multiply, {graph.rows_of(dst), gradient_of_dst},
                                 graph.matrix(graph.next(), problem.rows, columns, f32));
    const auto deltas = graph.sum(parts, graph.per_row(graph.next()), -1);
    const auto differences =
        graph.add(kind::Subtract, {products, deltas}, graph.scores(graph.next()));
    auto gradient = graph.add(kind::Multiply, {weights, differences}, graph.scores(graph.next()));
    if (how == change::other_reader) graph.add(kind::Tanh, {gradient}, graph.scores(extra_output));
    if (how != change::no_scale)
        gradient = graph.scaled(gradient, how == change::other_scale ? other : scale);
    gradient = graph.cast(gradient);
    graph.multiply(gradient, graph.keys_of(key), graph.rows_of(query_gradient), false, false);
    store_keys(gradient, graph.rows_of(query), key_gradient);
    return graph.ops;
}

test::element element_of(tensor_type type) {
    return static_cast<test::element>(static_cast<int>(type));
}

// Computes attention and its gradients by definition, in double precision.
class definition {
public:
    explicit definition(const training_case& problem) : problem_(problem) {}

    tensors inputs();
    void check_forward(const tensors& memory) const;
    void check_backward(const tensors& memory, double factor) const;

private:
    using numbers = std::vector<double>;

    numbers random(std::int64_t count, double most);
    void store(std::size_t id, const numbers& from, tensor_type type);
    void expect_near(const tensors& memory, std::size_t id, const numbers& expected,
                     tensor_type type) const;
    bool is_masked(std::int64_t head, std::int64_t r, std::int64_t k) const;
    double masked(double score, std::int64_t head, std::int64_t r, std::int64_t k) const;
    std::int64_t heads() const { return outer * problem_.heads(); }
    std::int64_t shared(std::int64_t head) const { return head / problem_.heads(); }

    const training_case& problem_;
    std::mt19937 random_{7};
    tensors memory_;
    numbers query_, key_, value_, dst_, dst_gradient_, statistics_, mask_;
    numbers weights_; // SoftMax's result, recomputed from the statistics in f32
    double scale_ = 0.25;
};

definition::numbers definition::random(std::int64_t count, double most) {
    numbers drawn(static_cast<std::size_t>(count));
    std::uniform_real_distribution<double> draw(-most, most);
    for (double& each : drawn) each = test::round_to(draw(random_), element_of(problem_.type));
    return drawn;
}

void definition::store(std::size_t id, const numbers& from, tensor_type type) {
    const auto width = static_cast<std::size_t>(test::width_bytes(element_of(type)));
    auto& bytes = memory_[id];
    bytes.resize(from.size() * width);
    for (std::size_t i = 0; i < from.size(); ++i)
        test::store(reinterpret_cast<std::byte*>(bytes.data()) + i * width, element_of(type),
                    from[i]);
}

bool definition::is_masked(std::int64_t head, std::int64_t r, std::int64_t k) const {
    if (problem_.mask == mask_kind::causal) return k > r;
    if (problem_.mask == mask_kind::bottom_right) return k > r + keys - problem_.rows;
    const std::int64_t batch = head / (heads() / 2);
    return problem_.mask == mask_kind::select &&
           mask_[static_cast<std::size_t>((batch * problem_.rows + r) * keys + k)] == 0;
}

double definition::masked(double score, std::int64_t head, std::int64_t r, std::int64_t k) const {
    if (is_masked(head, r, k)) return problem_.fill;
    const std::int64_t batch = head / (heads() / 2);
    return problem_.mask == mask_kind::add
               ? score + mask_[static_cast<std::size_t>((batch * problem_.rows + r) * keys + k)]
               : score;
}

tensors definition::inputs() {
    const std::int64_t rows = problem_.rows;
    query_ = random(heads() * rows * depth, 1);
    key_ = random(outer * keys * depth, 1);
    value_ = random(outer * keys * columns, 1);
    dst_gradient_ = random(heads() * rows * columns, 1);
    mask_ = random(2 * rows * keys, 1);
    for (std::size_t i = 0; i < mask_.size(); ++i) {
        const bool hides = i / static_cast<std::size_t>(keys) % 7 != 3 && mask_[i] > 0.2;
        if (problem_.mask == mask_kind::select) mask_[i] = hides ? 0 : 1;
        if (problem_.mask == mask_kind::add && hides) mask_[i] = -INFINITY;
    }
    dst_.resize(query_.size() / depth * columns);
    statistics_.resize(query_.size() / depth);
    weights_.resize(statistics_.size() * keys);
    for (std::int64_t row = 0; row < heads() * rows; ++row) {
        const std::int64_t head = row / rows, first_key = shared(head) * keys;
        double* const weights = weights_.data() + row * keys;
        double total = 0, highest = -INFINITY;
        for (std::int64_t k = 0; k < keys; ++k) {
            double score = 0;
            for (std::int64_t i = 0; i < depth; ++i)
                score += query_[static_cast<std::size_t>(row * depth + i)] *
                         key_[static_cast<std::size_t>((first_key + k) * depth + i)];
            weights[k] = masked(score * scale_, head, row % rows, k);
            highest = std::max(highest, weights[k]);
        }
        for (std::int64_t k = 0; k < keys; ++k) total += std::exp(weights[k] - highest);
        const double log_sum = std::isinf(highest) ? 0 : highest + std::log(total);
        statistics_[static_cast<std::size_t>(row)] = log_sum;
        for (std::int64_t c = 0; c < columns; ++c) {
            double sum = 0;
            for (std::int64_t k = 0; k < keys; ++k)
                sum += std::exp(weights[k] - log_sum) *
                       value_[static_cast<std::size_t>((first_key + k) * columns + c)];
            dst_[static_cast<std::size_t>(row * columns + c)] = sum;
        }
        // The gradients read the statistics as f32. If every score of a row is -1e9, f32 loses
        // log(total), so these weights differ from those of the forward pass.
        for (std::int64_t k = 0; k < keys; ++k)
            weights[k] = std::exp(weights[k] - static_cast<float>(log_sum));
    }
    store(query, query_, problem_.type);
    store(key, key_, problem_.type);
    store(value, value_, problem_.type);
    store(dst, dst_, problem_.type);
    store(dst_gradient, dst_gradient_, problem_.type);
    store(statistics, statistics_, f32);
    store(scale, {problem_.divides ? 1 / scale_ : scale_}, f32);
    store(other, {0.5}, f32);
    store(fill, {problem_.fill}, f32);
    store(mask, mask_, problem_.mask == mask_kind::select ? boolean : problem_.type);
    store(keys_number, {double{keys}}, tensor_type::s32);
    store(rows_number, {static_cast<double>(rows)}, tensor_type::s32);
    return memory_;
}

// The tolerance is 6 times `roundoff` of the case's type, relative to the largest element. For f32,
// `roundoff` is 2^-18, looser than the type's own 2^-24.
void definition::expect_near(const tensors& memory, std::size_t id, const numbers& expected,
                             tensor_type type) const {
    const double roundoff = problem_.type == f32    ? 0x1p-18
                            : problem_.type == bf16 ? 0x1p-8
                                                    : 0x1p-11;
    double largest = 0;
    for (const double each : expected) largest = std::max(largest, std::abs(each));
    const auto width = static_cast<std::size_t>(test::width_bytes(element_of(type)));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto* const element =
            reinterpret_cast<const std::byte*>(memory.at(id).data()) + i * width;
        ASSERT_NEAR(test::load(element, element_of(type)), expected[i], 6 * roundoff * largest)
            << "tensor " << id << " at " << i;
    }
}

void definition::check_forward(const tensors& memory) const {
    expect_near(memory, statistics, statistics_, f32);
    expect_near(memory, dst, dst_, problem_.type);
}

// `factor` multiplies the scores' gradients.
void definition::check_backward(const tensors& memory, double factor) const {
    numbers d_query(query_.size()), d_key(key_.size()), d_value(value_.size());
    for (std::int64_t row = 0; row < heads() * problem_.rows; ++row) {
        const std::int64_t first_key = shared(row / problem_.rows) * keys;
        const auto at = [](const numbers& from, std::int64_t i) {
            return from[static_cast<std::size_t>(i)];
        };
        double delta = 0;
        for (std::int64_t c = 0; c < columns; ++c)
            delta += at(dst_gradient_, row * columns + c) * at(dst_, row * columns + c);
        for (std::int64_t k = 0; k < keys; ++k) {
            const double weight = at(weights_, row * keys + k);
            double product = 0;
            for (std::int64_t c = 0; c < columns; ++c) {
                const double gradient = at(dst_gradient_, row * columns + c);
                product += gradient * at(value_, (first_key + k) * columns + c);
                d_value[static_cast<std::size_t>((first_key + k) * columns + c)] +=
                    weight * gradient;
            }
            const double gradient = weight * (product - delta) * factor;
            for (std::int64_t i = 0; i < depth; ++i) {
                d_query[static_cast<std::size_t>(row * depth + i)] +=
                    gradient * at(key_, (first_key + k) * depth + i);
                d_key[static_cast<std::size_t>((first_key + k) * depth + i)] +=
                    gradient * at(query_, row * depth + i);
            }
        }
    }
    expect_near(memory, query_gradient, d_query, problem_.type);
    expect_near(memory, key_gradient, d_key, problem_.type);
    expect_near(memory, value_gradient, d_value, problem_.type);
}

std::vector<training_case> cases() {
    using enum mask_kind;
    std::vector<training_case> list;
    for (const auto mask : {none, causal, bottom_right, select, add})
        for (const auto type : {f32, bf16, tensor_type::f16})
            for (const bool grouped : {false, true})
                list.push_back({.mask = mask, .type = type, .grouped = grouped});
    list.push_back({.mask = causal, .divides = true});
    // Masked keys have a nonzero weight, so gradients pass through them.
    list.push_back({.mask = select, .fill = -3});
    // Rows 0 to 15 have no unmasked key.
    list.push_back({.mask = bottom_right, .fill = -1e9F, .rows = 64});
    list.push_back({.mask = bottom_right, .rows = 64});
    list.push_back({.mask = causal, .type = bf16, .rows = 1});
    return list;
}

bool is_supported(tensor_type type) {
    return type == f32 || (type == bf16 ? library().bf16 : library().f16);
}

// Whether Maskwise owns the only partition, and compile prints exactly one claim line, with `form`.
bool runs_as(const char* form, const std::vector<partition>& partitions) {
    if (partitions.size() != 1) return false;
    const partition& whole = partitions[0];
    testing::internal::CaptureStderr();
    const auto compiled = compile(whole, whole.get_input_ports(), whole.get_output_ports());
    const std::string lines = testing::internal::GetCapturedStderr();
    const std::size_t claim = lines.find("maskwise,claim,");
    return claim != std::string::npos && claim == lines.rfind("maskwise,claim,") &&
           lines.find(std::string(",") + form + ',') != std::string::npos &&
           maskwise_owns(compiled);
}

class training : public testing::TestWithParam<training_case> {};

TEST_P(training, attention_with_statistics) {
    const training_case& problem = GetParam();
    if (!is_supported(problem.type)) GTEST_SKIP() << "oneDNN does not support the type on this CPU";
    definition expected(problem);
    tensors memory = expected.inputs();
    const auto partitions = partitions_of(forward(problem));
    run(partitions, memory);
    expected.check_forward(memory);
    EXPECT_EQ(runs_as("attention", partitions), partitions.size() == 1 && plugin_is_loaded());
}

TEST_P(training, gradients) {
    const training_case& problem = GetParam();
    if (!is_supported(problem.type)) GTEST_SKIP() << "oneDNN does not support the type on this CPU";
    definition expected(problem);
    tensors memory = expected.inputs();
    const auto partitions = partitions_of(backward(problem));
    run(partitions, memory);
    expected.check_backward(memory, 0.25);
    EXPECT_EQ(runs_as("gradients", partitions), partitions.size() == 1 && plugin_is_loaded());
}

// The library chooses the layouts of the gradients.
TEST_P(training, gradients_of_any_layout) {
    const training_case& problem = GetParam();
    if (!is_supported(problem.type)) GTEST_SKIP() << "oneDNN does not support the type on this CPU";
    const auto partitions = partitions_of(backward(problem));
    if (partitions.size() != 1) GTEST_SKIP() << "oneDNN makes several partitions";
    auto outputs = partitions[0].get_output_ports();
    for (logical_tensor& output : outputs)
        output = {output.get_id(), problem.type, output.get_dims(), layout::any};
    const auto compiled = compile(partitions[0], partitions[0].get_input_ports(), outputs);
    for (const logical_tensor& output : outputs) {
        const auto chosen = compiled.query_logical_tensor(output.get_id());
        EXPECT_EQ(chosen.get_dims(), output.get_dims());
        EXPECT_EQ(chosen.get_data_type(), problem.type);
    }
    EXPECT_EQ(maskwise_owns(compiled), plugin_is_loaded());
}

// The scores' gradient has a scale other than the scores', no scale, or a second consumer.
TEST_P(training, other_graphs_are_not_gradients) {
    const training_case& problem = GetParam();
    if (!is_supported(problem.type)) GTEST_SKIP() << "oneDNN does not support the type on this CPU";
    if (problem.divides) GTEST_SKIP() << "the cases that multiply by the scale cover this";
    for (const auto& [how, factor] : {std::pair{change::other_scale, 0.5},
                                      {change::no_scale, 1.0},
                                      {change::other_reader, 0.25}}) {
        definition expected(problem);
        tensors memory = expected.inputs();
        const auto partitions = partitions_of(backward(problem, how));
        run(partitions, memory);
        expected.check_backward(memory, factor);
        EXPECT_FALSE(runs_as("gradients", partitions));
    }
}

INSTANTIATE_TEST_SUITE_P(all, training, testing::ValuesIn(cases()));

} // namespace
} // namespace maskwise::contract
#else
TEST(training, all) {
    GTEST_SKIP() << "oneDNN has training partitions since 3.12";
}
#endif
