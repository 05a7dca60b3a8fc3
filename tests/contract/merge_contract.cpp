// Merging around a Select as a client meets it: through oneDNN's public C++ header, in every lane,
// with oneDNN alone and with the plugin. What merged partitions compute is the batch merge_ci's.

#include "cpp_client.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace maskwise::contract {
namespace {

using policy = partition::policy;

const extents shape{3, 4, 33};

// exp(0) -> 4; 1 ? 4 : 2 -> 5; 5 + 3 -> 6
std::vector<partition> exp_select_add(policy which = policy::fusion) {
    return partitions_of(
        {make(10, kind::Exp, {dense(0, shape)}, dense(4, shape)),
         make(11, kind::Select, {dense(1, {4, 33}, boolean), dense(4, shape), dense(2, {1})},
              dense(5, shape)),
         make(12, kind::Add, {dense(5, shape), dense(3, shape)}, dense(6, shape))},
        which);
}

TEST(merge, makes_one_partition_with_all_ports) {
    const auto partitions = exp_select_add();
    EXPECT_EQ(plugin_is_loaded(), plugin_expected());
    if (!merges()) {
        EXPECT_EQ(partitions.size(), 3U);
        return;
    }
    ASSERT_EQ(partitions.size(), 1U);
    EXPECT_EQ(partitions[0].get_ops(), (ids{10, 11, 12}));
    EXPECT_EQ(ids_of(partitions[0].get_input_ports()), (ids{0, 1, 2, 3}));
    EXPECT_EQ(ids_of(partitions[0].get_output_ports()), (ids{6}));
    EXPECT_TRUE(partitions[0].is_supported());
    EXPECT_EQ(partitions[0].get_engine_kind(), dnnl::engine::kind::cpu);
}

TEST(merge, never_under_policy_debug) {
    EXPECT_EQ(exp_select_add(policy::debug).size(), 3U);
}

// The merged partition uses what an operator makes that stands behind its first member: tanh(0) is
// used by the last of three.
TEST(merge, keeps_a_topological_order) {
    const auto value = [](std::size_t id) { return dense(id, shape); };
    const auto partitions = partitions_of(
        {make(12, kind::Tanh, {value(0)}, value(5)),
         make(13, kind::Multiply, {value(5), value(5)}, value(6)), // keeps 12 out: used twice
         make(15, kind::ReLU, {value(6)}, value(8)), make(10, kind::Exp, {value(0)}, value(3)),
         make(11, kind::Select, {dense(1, shape, boolean), value(3), value(2)}, value(4)),
         make(14, kind::Add, {value(4), value(5)}, value(7))});
    EXPECT_EQ(partitions.size(), merges() ? 3U : 5U); // 13 and 15 are one of oneDNN's
    std::set<std::size_t> made{0, 1, 2};
    for (const partition& each : partitions) {
        for (const std::size_t id : ids_of(each.get_input_ports())) EXPECT_TRUE(made.contains(id));
        for (const std::size_t id : ids_of(each.get_output_ports())) made.insert(id);
    }
    EXPECT_TRUE(made.contains(8));
}

// Operands that lie across dst, and a dst with gaps, are brought into order first.
TEST(merge, takes_any_layout) {
    if (!merges()) GTEST_SKIP() << "three partitions without the plugin";
    const auto merged = exp_select_add();
    ASSERT_EQ(merged.size(), 1U);
    const extents across{1, 3, 12}, gaps{4 * 66, 66, 2};
    const std::vector<logical_tensor> inputs{{0, f32, shape, across},
                                             {1, boolean, extents{4, 33}, extents{1, 4}},
                                             dense(2, {1}),
                                             dense(3, shape)};
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
             {inputs[1], cond.data()},
             {inputs[2], y.data()},
             {inputs[3], z.data()}},
            {{output, dst.data()}});
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 4; ++j)
            for (std::size_t k = 0; k < 33; ++k) {
                const float kept = std::exp(x[i + 3 * j + 12 * k]);
                const float expected =
                    (cond[j + 4 * k] != 0 ? kept : y[0]) + z[(i * 4 + j) * 33 + k];
                const std::size_t at = i * 264 + j * 66 + 2 * k;
                ASSERT_NEAR(dst[at], expected, 1e-5F);
                ASSERT_EQ(dst[at + 1], -7.0F); // the gap
            }
}

std::vector<partition> select_then(kind what) {
    const auto value = [](std::size_t id) { return dense(id, shape); };
    std::vector<op> ops{
        make(10, kind::Select, {dense(0, {33}, boolean), value(1), dense(2, {1})}, value(3)),
        what == kind::SoftMax ? soft_max(11, value(3), value(4))
                              : make(11, what, {value(3)}, value(4))};
    return partitions_of(ops);
}

// Of other types than boolean oneDNN takes cond at compile, and any number but 0 is true.
TEST(merge, takes_any_cond_that_onednn_takes) {
    if (!merges() || !knows_select()) GTEST_SKIP() << "nothing to compare";
    for (const kind what : {kind::ReLU, kind::SoftMax}) {
        const auto partitions = select_then(what);
        tensors memory{{0, {}}};
        for (int i = 0; i < 33; ++i) memory[0].push_back(static_cast<std::uint8_t>(i % 3));
        tensors as_boolean = memory;
        run(partitions, memory, {{0, dense(0, {33}, tensor_type::u8)}});
        run(partitions, as_boolean);
        EXPECT_EQ(memory.at(4), as_boolean.at(4));
    }
}

TEST(merge, refuses_a_dst_that_overlaps_itself) {
    if (!merges()) GTEST_SKIP() << "oneDNN alone has two partitions";
    const auto merged = select_then(kind::SoftMax);
    ASSERT_EQ(merged.size(), 1U);
    const logical_tensor overlapping{4, f32, shape, extents{132, 30, 1}};
    EXPECT_EQ(status_of([&] { compile(merged[0], merged[0].get_input_ports(), {overlapping}); }),
              dnnl_invalid_arguments);
}

// exp(0) and the sum may lie in one place: the client is told so, and it holds.
TEST(merge, runs_in_place_where_it_says_so) {
    if (!merges()) GTEST_SKIP() << "three partitions without the plugin";
    const auto merged = exp_select_add();
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
             {inputs[1], cond.data()},
             {inputs[2], y.data()},
             {inputs[3], z.data()}},
            {{merged[0].get_output_ports()[0], x.data()}});
    for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(x[i], (i % cond.size() % 3 == 0 ? std::exp(0.5F) : 0.25F) + 2.0F, 1e-5F) << i;
}

// Behind the Select: LeakyReLU by 0.5, Clamp to [-0.25, 0.75], Quantize by 0.125 around 3.
TEST(merge, takes_operators_with_constants) {
    using attr = op::attr;
    std::vector<op> ops{
        make(10, kind::Select, {dense(0, shape, boolean), dense(1, shape), dense(2, {1})},
             dense(3, shape)),
        make(11, kind::LeakyReLU, {dense(3, shape)}, dense(4, shape)),
        make(12, kind::Clamp, {dense(4, shape)}, dense(5, shape)),
        make(13, kind::Quantize, {dense(5, shape)}, dense(6, shape, tensor_type::u8))};
    ops[1].set_attr<float>(attr::alpha, 0.5F);
    ops[2].set_attr<float>(attr::min, -0.25F).set_attr<float>(attr::max, 0.75F);
    ops[3].set_attr<std::vector<float>>(attr::scales, {0.125F});
    ops[3].set_attr<std::vector<std::int64_t>>(attr::zps, {3});
    const auto partitions = partitions_of(ops);
    EXPECT_EQ(partitions.size() == 1, merges());
    if (!knows_select() && !merges()) GTEST_SKIP() << "no one runs Select";
    const std::size_t count = element_count(shape);
    std::vector<std::uint8_t> cond(count, 1);
    std::vector<float> x(count), y{-0.25F};
    for (std::size_t i = 0; i < count; ++i) {
        x[i] = static_cast<float>(i % 17) / 4.0F - 2.0F;
        cond[i] = i % 5 != 0 ? 1 : 0;
    }
    const auto bytes = [](const auto& from) {
        const auto* first = reinterpret_cast<const std::uint8_t*>(from.data());
        return std::vector<std::uint8_t>(first, first + from.size() * sizeof(from[0]));
    };
    tensors memory{{0, cond}, {1, bytes(x)}, {2, bytes(y)}};
    run(partitions, memory);
    for (std::size_t i = 0; i < count; ++i) {
        const float selected = cond[i] != 0 ? x[i] : y[0];
        const float leaky = selected < 0.0F ? 0.5F * selected : selected;
        const float clamped = std::min(std::max(leaky, -0.25F), 0.75F);
        ASSERT_EQ(memory.at(6)[i], std::nearbyint(clamped / 0.125F) + 3.0F) << i;
    }
}

// Which oneDNN refuses when it compiles them, or takes for other numbers.
TEST(merge, leaves_constants_that_no_row_has) {
    using attr = op::attr;
    const float nan = std::nanf("");
    const auto count_with = [](op second) {
        return partitions_of({make(10, kind::Select,
                                   {dense(0, shape, boolean), dense(1, shape), dense(2, {1})},
                                   dense(3, shape)),
                              std::move(second)})
            .size();
    };
    const auto clamp = [&](float least, float most) {
        op made = make(11, kind::Clamp, {dense(3, shape)}, dense(4, shape));
        made.set_attr<float>(attr::min, least).set_attr<float>(attr::max, most);
        return count_with(made);
    };
    const auto quantize = [&](float scale, std::int64_t zero_point) {
        op made = make(11, kind::Quantize, {dense(3, shape)}, dense(4, shape, tensor_type::s8));
        made.set_attr<std::vector<float>>(attr::scales, {scale});
        made.set_attr<std::vector<std::int64_t>>(attr::zps, {zero_point});
        return count_with(made);
    };
    const std::size_t merged = merges() ? 1 : 2;
    EXPECT_EQ(clamp(1, 1), merged);
    EXPECT_EQ(clamp(2, 1), 2U);
    EXPECT_EQ(clamp(nan, 1), 2U);
    EXPECT_EQ(clamp(0, nan), 2U);
    EXPECT_EQ(quantize(0.5F, std::int64_t{1} << 30), merged);
    EXPECT_EQ(quantize(0.5F, std::int64_t{1} << 33), 2U);
    EXPECT_EQ(quantize(0, 0), 2U);
}

TEST(merge, refuses_wrong_shapes_with_a_status) {
    if (!merges()) GTEST_SKIP() << "three partitions without the plugin";
    const auto merged = exp_select_add();
    auto inputs = merged[0].get_input_ports();
    inputs[3] = dense(3, {3, 5, 33});
    EXPECT_EQ(status_of([&] { compile(merged[0], inputs, merged[0].get_output_ports()); }),
              dnnl_invalid_shape);
}

} // namespace
} // namespace maskwise::contract
