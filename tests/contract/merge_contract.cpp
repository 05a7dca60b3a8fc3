// Graphs whose Select and SoftMax the plugin merges, built with oneDNN's C++ header. Tested with
// every oneDNN version, with and without the plugin. benchdnn's batch merge_ci tests the results of
// merged partitions.

#include "cpp_client.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace maskwise::contract {
namespace {

using policy = partition::policy;

const extents shape{3, 4, 33};

// tN is the tensor with id N: t4 = t0 * t3; t5 = t1 ? t4 : t2; t6 = SoftMax(t5).
std::vector<partition> scale_select_soft_max(policy which = policy::fusion) {
    return partitions_of(
        {make(10, kind::Multiply, {dense(0, shape), dense(3, shape)}, dense(4, shape)),
         make(11, kind::Select, {dense(1, {4, 33}, boolean), dense(4, shape), dense(2, {1})},
              dense(5, shape)),
         soft_max(12, dense(5, shape), dense(6, shape))},
        which);
}

std::vector<float> soft_max_of(std::vector<float> row) {
    float sum = 0;
    for (float& each : row) sum += each = std::exp(each);
    for (float& each : row) each /= sum;
    return row;
}

TEST(merge, makes_one_partition_with_all_ports) {
    const auto partitions = scale_select_soft_max();
    EXPECT_EQ(plugin_is_loaded(), plugin_expected());
    if (!merges()) {
        EXPECT_EQ(partitions.size(), 3U);
        return;
    }
    ASSERT_EQ(partitions.size(), 1U);
    EXPECT_EQ(partitions[0].get_ops(), (ids{10, 11, 12}));
    EXPECT_EQ(ids_of(partitions[0].get_input_ports()), (ids{0, 3, 1, 2}));
    EXPECT_EQ(ids_of(partitions[0].get_output_ports()), (ids{6}));
    EXPECT_TRUE(partitions[0].is_supported());
    EXPECT_EQ(partitions[0].get_engine_kind(), dnnl::engine::kind::cpu);
}

TEST(merge, never_under_policy_debug) {
    EXPECT_EQ(scale_select_soft_max(policy::debug).size(), 3U);
}

// Without a SoftMax, each operator stays a separate partition.
TEST(merge, needs_a_soft_max) {
    const auto partitions = partitions_of(
        {make(10, kind::Tanh, {dense(0, shape)}, dense(3, shape)),
         make(11, kind::Select, {dense(1, {33}, boolean), dense(3, shape), dense(2, {1})},
              dense(4, shape)),
         make(12, kind::Exp, {dense(4, shape)}, dense(5, shape))});
    ASSERT_EQ(partitions.size(), 3U);
    if (!knows_select() && !plugin_is_loaded())
        GTEST_SKIP() << "neither oneDNN nor the plugin runs Select";
    tensors memory;
    run(partitions, memory);
    for (std::size_t i = 0; i < element_count(shape); ++i)
        ASSERT_NEAR(element(memory, 5, i), std::exp(std::tanh(element(memory, 0, i))), 1e-5F);
}

// The plugin merges operators 10, 11, 14 and 16. The merged partition reads tensor 5, so operator
// 12 must come first. Operator 13 reads tensor 5 twice, so operator 12 stays separate.
TEST(merge, keeps_a_topological_order) {
    const auto value = [](std::size_t id) { return dense(id, shape); };
    const auto partitions = partitions_of(
        {make(12, kind::Tanh, {value(0)}, value(5)),
         make(13, kind::Multiply, {value(5), value(5)}, value(6)),
         make(15, kind::ReLU, {value(6)}, value(8)), make(10, kind::Tanh, {value(0)}, value(3)),
         make(11, kind::Select, {dense(1, shape, boolean), value(3), value(2)}, value(4)),
         make(14, kind::Add, {value(4), value(5)}, value(7)), soft_max(16, value(7), value(9))});
    if (merges()) {
        EXPECT_EQ(partitions.size(), 3U); // oneDNN fuses 13 and 15
    }
    std::set<std::size_t> available{0, 1, 2};
    for (const partition& each : partitions) {
        for (const std::size_t id : ids_of(each.get_input_ports()))
            EXPECT_TRUE(available.contains(id));
        for (const std::size_t id : ids_of(each.get_output_ports())) available.insert(id);
    }
    EXPECT_TRUE(available.contains(8) && available.contains(9));
}

// The Multiply's first input and the mask are transposed, and dst has gaps.
TEST(merge, supports_any_layout) {
    if (!merges()) GTEST_SKIP() << "merging needs the plugin and oneDNN 3.5 or newer";
    const auto merged = scale_select_soft_max();
    ASSERT_EQ(merged.size(), 1U);
    const extents across{1, 3, 12}, gaps{4 * 66, 66, 2};
    const std::vector<logical_tensor> inputs{{0, f32, shape, across},
                                             dense(3, shape),
                                             {1, boolean, extents{4, 33}, extents{1, 4}},
                                             dense(2, {1})};
    const logical_tensor output{6, f32, shape, gaps};
    const auto compiled = compile(merged[0], inputs, {output});
    EXPECT_TRUE(maskwise_owns(compiled));
    std::mt19937 random(9);
    std::vector<float> x(element_count(shape)), z(x.size()), y{0.25F}, dst(x.size() * 2, -7.0F);
    std::vector<std::uint8_t> cond(4 * 33);
    for (float& each : x) each = static_cast<float>(random() % 1000) / 500.0F;
    for (float& each : z) each = static_cast<float>(random() % 1000) / 500.0F;
    for (auto& each : cond) each = static_cast<std::uint8_t>(random() % 2);
    execute(compiled,
            {{inputs[0], x.data()},
             {inputs[1], z.data()},
             {inputs[2], cond.data()},
             {inputs[3], y.data()}},
            {{output, dst.data()}});
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
            std::vector<float> row(33);
            for (std::size_t k = 0; k < 33; ++k)
                row[k] =
                    cond[j + 4 * k] != 0 ? x[i + 3 * j + 12 * k] * z[(i * 4 + j) * 33 + k] : y[0];
            const auto expected = soft_max_of(row);
            for (std::size_t k = 0; k < 33; ++k) {
                const std::size_t index = i * 264 + j * 66 + 2 * k;
                ASSERT_NEAR(dst[index], expected[k], 1e-5F);
                ASSERT_EQ(dst[index + 1], -7.0F); // the gap
            }
        }
}

std::vector<partition> select_soft_max() {
    return partitions_of(
        {make(10, kind::Select, {dense(0, {33}, boolean), dense(1, shape), dense(2, {1})},
              dense(3, shape)),
         soft_max(11, dense(3, shape), dense(4, shape))});
}

// At compile, oneDNN accepts a cond that is not boolean. Any nonzero number is true.
TEST(merge, accepts_every_cond_that_onednn_accepts) {
    if (!merges() || !knows_select())
        GTEST_SKIP() << "merging needs the plugin and oneDNN 3.5 or newer";
    const auto partitions = select_soft_max();
    tensors memory{{0, {}}};
    for (int i = 0; i < 33; ++i) memory[0].push_back(static_cast<std::uint8_t>(i % 3));
    tensors as_boolean = memory;
    run(partitions, memory, {{0, dense(0, {33}, tensor_type::u8)}});
    run(partitions, as_boolean);
    EXPECT_EQ(memory.at(4), as_boolean.at(4));
}

// A merged partition accepts only the types that the operators declared.
TEST(merge, refuses_other_types_than_declared) {
    if (!merges()) GTEST_SKIP() << "merging needs the plugin and oneDNN 3.5 or newer";
    const auto merged = select_soft_max();
    ASSERT_EQ(merged.size(), 1U);
    auto inputs = merged[0].get_input_ports(), outputs = merged[0].get_output_ports();
    for (auto& input : inputs)
        if (input.get_id() == 1) input = dense(1, shape, bf16);
    EXPECT_EQ(status_of([&] { compile(merged[0], inputs, outputs); }), dnnl_invalid_arguments);
    EXPECT_NO_THROW(compile(merged[0], merged[0].get_input_ports(), outputs));
}

TEST(merge, refuses_a_dst_that_overlaps_itself) {
    if (!merges()) GTEST_SKIP() << "merging needs the plugin and oneDNN 3.5 or newer";
    const auto merged = select_soft_max();
    ASSERT_EQ(merged.size(), 1U);
    const logical_tensor overlapping{4, f32, shape, extents{132, 30, 1}};
    EXPECT_EQ(status_of([&] { compile(merged[0], merged[0].get_input_ports(), {overlapping}); }),
              dnnl_invalid_arguments);
}

// The plugin reports that scores and result may share memory, so sharing must work.
TEST(merge, runs_in_place_as_reported) {
    if (!merges()) GTEST_SKIP() << "merging needs the plugin and oneDNN 3.5 or newer";
    const auto merged = scale_select_soft_max();
    const auto inputs = merged[0].get_input_ports();
    const auto compiled = compile(merged[0], inputs, merged[0].get_output_ports());
    const auto pairs = compiled.get_inplace_ports();
    ASSERT_EQ(pairs.size(), 1U);
    EXPECT_EQ(pairs[0], std::make_pair(std::size_t{0}, std::size_t{6}));
    std::vector<float> x(element_count(shape), 0.5F), y{0.25F}, z(x.size(), 2.0F);
    std::vector<std::uint8_t> cond(4 * 33);
    for (std::size_t i = 0; i < cond.size(); ++i) cond[i] = i % 3 == 0 ? 1 : 0;
    execute(compiled,
            {{inputs[0], x.data()},
             {inputs[1], z.data()},
             {inputs[2], cond.data()},
             {inputs[3], y.data()}},
            {{merged[0].get_output_ports()[0], x.data()}});
    std::vector<float> row(33);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = i % 3 == 0 ? 0.5F * 2.0F : 0.25F;
    const auto expected = soft_max_of(row);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected[i % 33], 1e-5F) << i;
}

TEST(merge, includes_an_operator_with_an_attribute) {
    using attr = op::attr;
    std::vector<op> ops{make(10, kind::Select,
                             {dense(0, {33}, boolean), dense(1, shape), dense(2, {1})},
                             dense(3, shape)),
                        make(11, kind::LeakyReLU, {dense(3, shape)}, dense(4, shape)),
                        soft_max(13, dense(4, shape), dense(6, shape))};
    ops[1].set_attr<float>(attr::alpha, 0.5F);
    const auto partitions = partitions_of(ops);
    EXPECT_EQ(partitions.size() == 1, merges());
    if (!knows_select() && !merges()) GTEST_SKIP() << "neither oneDNN nor the plugin runs Select";
    std::vector<float> scores;
    for (std::size_t i = 0; i < element_count(shape); ++i)
        scores.push_back(static_cast<float>(i % 17) / 4.0F - 2.0F);
    const auto* first = reinterpret_cast<const std::uint8_t*>(scores.data());
    tensors memory{{1, {first, first + scores.size() * sizeof(float)}}};
    run(partitions, memory); // fills the mask with true
    for (std::size_t start = 0; start < scores.size(); start += 33) {
        std::vector<float> row;
        for (std::size_t i = start; i < start + 33; ++i)
            row.push_back(scores[i] < 0.0F ? 0.5F * scores[i] : scores[i]);
        const auto expected = soft_max_of(row);
        for (std::size_t i = 0; i < 33; ++i)
            ASSERT_NEAR(element(memory, 6, start + i), expected[i], 1e-5F) << start + i;
    }
}

TEST(merge, refuses_wrong_shapes_with_a_status) {
    if (!merges()) GTEST_SKIP() << "merging needs the plugin and oneDNN 3.5 or newer";
    const auto merged = scale_select_soft_max();
    auto inputs = merged[0].get_input_ports();
    inputs[1] = dense(3, {3, 5, 33});
    EXPECT_EQ(status_of([&] { compile(merged[0], inputs, merged[0].get_output_ports()); }),
              dnnl_invalid_shape);
}

} // namespace
} // namespace maskwise::contract
