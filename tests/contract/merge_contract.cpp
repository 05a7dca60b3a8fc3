// Merging around a Select as a client meets it: through oneDNN's public C++ header, in every lane,
// with oneDNN alone and with the plugin. Whatever the partitions are, every graph is run partition
// by partition in the order in which they are handed out, and gives what the operators give one by
// one.

#include "cpp_client.hpp"

#include "support/operations.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

namespace maskwise::contract {
namespace {

using policy = partition::policy;
using numbers = std::vector<double>; // of a tensor: f32, or boolean as 0 and 1; row-major

struct node {
    std::size_t id;
    op::kind what;
    ids inputs;
    std::size_t output;
};

// A graph of f32 tensors and masks, whose shapes are given.
class client_graph {
public:
    client_graph(std::map<std::size_t, extents> shapes, std::set<std::size_t> masks,
                 std::vector<node> nodes)
        : shapes_(std::move(shapes)), masks_(std::move(masks)), nodes_(std::move(nodes)) {}

    logical_tensor describe(std::size_t id) const {
        return dense(id, shapes_.at(id), masks_.contains(id) ? boolean : f32);
    }

    std::vector<partition> partitions(policy which = policy::fusion) const {
        std::vector<op> ops;
        for (const node& each : nodes_) {
            std::vector<logical_tensor> inputs;
            for (const std::size_t id : each.inputs) inputs.push_back(describe(id));
            ops.push_back(make(each.id, each.what, inputs, describe(each.output)));
        }
        return partitions_of(ops, which);
    }

    // Runs the partitions as they come and compares every tensor that leaves one.
    void check(unsigned seed, policy which = policy::fusion) const {
        tensors memory = random_inputs(seed);
        std::map<std::size_t, numbers> values;
        for (const auto& [id, bytes] : memory) values[id] = read(id, memory);
        for (const node& each : nodes_) values[each.output] = evaluate(each, values);
        for (const partition& each : partitions(which)) {
            ASSERT_TRUE(each.is_supported());
            for (const auto& port : each.get_input_ports()) // in topological order
                ASSERT_TRUE(memory.contains(port.get_id())) << port.get_id();
            run({each}, memory);
            for (const auto& port : each.get_output_ports())
                compare(port.get_id(), values.at(port.get_id()), read(port.get_id(), memory));
        }
        EXPECT_TRUE(memory.contains(nodes_.back().output));
    }

private:
    tensors random_inputs(unsigned seed) const {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal(0.0F, 1.5F);
        std::set<std::size_t> made;
        for (const node& each : nodes_) made.insert(each.output);
        tensors inputs;
        for (const auto& [id, shape] : shapes_) {
            if (made.contains(id)) continue;
            auto& bytes = inputs[id];
            bytes.resize(describe(id).get_mem_size());
            if (masks_.contains(id))
                for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() % 2);
            for (std::size_t i = 0; !masks_.contains(id) && i < element_count(shape); ++i) {
                const float number = normal(random);
                std::memcpy(&bytes[i * sizeof number], &number, sizeof number);
            }
        }
        return inputs;
    }

    numbers read(std::size_t id, const tensors& memory) const {
        numbers found;
        for (std::size_t i = 0; i < element_count(shapes_.at(id)); ++i)
            found.push_back(static_cast<double>(masks_.contains(id) ? memory.at(id)[i]
                                                                    : element(memory, id, i)));
        return found;
    }

    numbers evaluate(const node& what, const std::map<std::size_t, numbers>& values) const {
        const extents& shape = shapes_.at(what.output);
        numbers result;
        extents index(shape.size(), 0);
        do {
            const auto argument = [&](std::size_t k) {
                const std::size_t id = what.inputs.at(k);
                const auto view = test::dense_view(nullptr, shapes_.at(id), 1);
                return values.at(id)[static_cast<std::size_t>(test::offset_bytes(view, index))];
            };
            result.push_back(compute(what.what, argument));
        } while (test::advance(index, shape));
        return result;
    }

    template <class Argument>
    static double compute(op::kind what, const Argument& argument) {
        if (what == kind::Select) return argument(0) != 0 ? argument(1) : argument(2);
        static const std::map<op::kind, test::operation> known{
            {kind::Add, test::operation::add},
            {kind::Multiply, test::operation::multiply},
            {kind::Exp, test::operation::exp},
            {kind::Tanh, test::operation::tanh},
            {kind::ReLU, test::operation::relu}};
        const auto operation = known.at(what);
        return test::compute(operation, argument(0),
                             test::input_count(operation) == 2 ? argument(1) : 0);
    }

    static void compare(std::size_t id, const numbers& expected, const numbers& actual) {
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(actual[i], expected[i], 2e-6 * (1 + std::fabs(expected[i])))
                << "tensor " << id << ", element " << i;
    }

    std::map<std::size_t, extents> shapes_;
    std::set<std::size_t> masks_;
    std::vector<node> nodes_;
};

std::vector<ids> ops_of(const std::vector<partition>& partitions) {
    std::vector<ids> found;
    for (const partition& each : partitions) found.push_back(each.get_ops());
    return found;
}

const extents shape{3, 4, 33};

// exp(0) -> 4; 1 ? 4 : 2 -> 5; 5 + 3 -> 6
client_graph exp_select_add() {
    return {
        {{0, shape}, {1, {4, 33}}, {2, {1}}, {3, shape}, {4, shape}, {5, shape}, {6, shape}},
        {1},
        {{10, kind::Exp, {0}, 4}, {11, kind::Select, {1, 4, 2}, 5}, {12, kind::Add, {5, 3}, 6}}};
}

TEST(merge, makes_one_partition_with_all_ports) {
    const auto partitions = exp_select_add().partitions();
    EXPECT_EQ(plugin_is_loaded(), plugin_expected());
    if (!merges()) {
        EXPECT_EQ(partitions.size(), 3U);
        return;
    }
    ASSERT_EQ(ops_of(partitions), (std::vector<ids>{{10, 11, 12}}));
    EXPECT_EQ(ids_of(partitions[0].get_input_ports()), (ids{0, 1, 2, 3}));
    EXPECT_EQ(ids_of(partitions[0].get_output_ports()), (ids{6}));
    EXPECT_TRUE(partitions[0].is_supported());
    EXPECT_EQ(partitions[0].get_engine_kind(), dnnl::engine::kind::cpu);
}

TEST(merge, never_under_policy_debug) {
    EXPECT_EQ(exp_select_add().partitions(policy::debug).size(), 3U);
}

TEST(merge, computes_what_the_operators_compute) {
    if (!knows_select() && !plugin_expected())
        GTEST_SKIP() << "this oneDNN does not support Select";
    exp_select_add().check(1);
    exp_select_add().check(2, policy::debug);
}

// The merged partition uses what an operator makes that stands behind its first member: tanh(0) is
// used by the last of three.
TEST(merge, keeps_a_topological_order) {
    if (!knows_select() && !plugin_expected())
        GTEST_SKIP() << "this oneDNN does not support Select";
    std::map<std::size_t, extents> shapes;
    for (std::size_t id = 0; id <= 8; ++id) shapes[id] = shape;
    const client_graph graph(shapes, {1},
                             {{10, kind::Exp, {0}, 3},
                              {11, kind::Select, {1, 3, 2}, 4},
                              {12, kind::Tanh, {0}, 5},
                              {13, kind::Multiply, {5, 5}, 6}, // keeps 12 out: used twice
                              {14, kind::Add, {4, 5}, 7},
                              {15, kind::ReLU, {6}, 8}});
    graph.check(3);
}

TEST(merge, leaves_values_that_are_used_elsewhere) {
    const client_graph graph(
        {{0, shape}, {1, shape}, {2, shape}, {3, shape}, {4, shape}, {5, shape}}, {1},
        {{10, kind::Exp, {0}, 3}, {11, kind::Select, {1, 3, 2}, 4}, {12, kind::Tanh, {3}, 5}});
    EXPECT_EQ(graph.partitions().size(), 3U);
}

TEST(merge, leaves_what_is_broadcast_in_between) {
    const extents row{33};
    const client_graph graph({{0, row}, {1, shape}, {2, shape}, {3, row}, {4, shape}}, {1},
                             {{10, kind::Exp, {0}, 3}, {11, kind::Select, {1, 3, 2}, 4}});
    EXPECT_EQ(graph.partitions().size(), 2U);
}

// Chains of random operators around Selects, operands broadcast in any way.
TEST(merge, agrees_on_random_graphs) {
    if (!knows_select() && !plugin_expected())
        GTEST_SKIP() << "this oneDNN does not support Select";
    std::mt19937 random(5);
    constexpr op::kind kinds[] = {kind::Select, kind::Add,  kind::Multiply,
                                  kind::Exp,    kind::Tanh, kind::ReLU};
    for (unsigned trial = 0; trial < 60; ++trial) {
        std::map<std::size_t, extents> shapes{{0, shape}};
        std::set<std::size_t> masks;
        std::vector<node> nodes;
        std::size_t current = 0, next = 1;
        const auto operand = [&](bool is_mask) {
            extents chosen = shape;
            for (auto& extent : chosen)
                if (random() % 4 == 0) extent = 1;
            shapes[next] = chosen;
            if (is_mask) masks.insert(next);
            return next++;
        };
        const unsigned length = 2 + static_cast<unsigned>(random() % 6);
        for (unsigned i = 0; i < length; ++i) {
            // Exp of Exp would leave the range in which tolerances make sense.
            op::kind what = kinds[random() % std::size(kinds)];
            if (what == kind::Exp && i > 0) what = kind::Tanh;
            ids inputs{current};
            if (what == kind::Add || what == kind::Multiply) inputs.push_back(operand(false));
            if (what == kind::Select) inputs = {operand(true), current, operand(false)};
            if (what == kind::Select && random() % 2 == 0) std::swap(inputs[1], inputs[2]);
            shapes[next] = shape;
            nodes.push_back({100 + i, what, inputs, next});
            current = next++;
        }
        client_graph(shapes, masks, nodes).check(trial);
        if (testing::Test::HasFailure()) FAIL() << "trial " << trial;
    }
}

// Operands that lie across dst, and a dst with gaps, are brought into order first.
TEST(merge, takes_any_layout) {
    if (!merges()) GTEST_SKIP() << "three partitions without the plugin or AVX2";
    const auto merged = exp_select_add().partitions();
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

// exp(0) and the sum may lie in one place: the client is told so, and it holds.
TEST(merge, runs_in_place_where_it_says_so) {
    if (!merges()) GTEST_SKIP() << "three partitions without the plugin or AVX2";
    const auto merged = exp_select_add().partitions();
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

TEST(merge, refuses_wrong_shapes_with_a_status) {
    if (!merges()) GTEST_SKIP() << "three partitions without the plugin or AVX2";
    const auto merged = exp_select_add().partitions();
    auto inputs = merged[0].get_input_ports();
    inputs[3] = dense(3, {3, 5, 33});
    EXPECT_EQ(status_of([&] { compile(merged[0], inputs, merged[0].get_output_ports()); }),
              dnnl_invalid_shape);
}

} // namespace
} // namespace maskwise::contract
