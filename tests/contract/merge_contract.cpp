// Merging around a Select as a client meets it: through oneDNN's public C++ header, in every lane,
// with oneDNN alone and with the plugin. Whatever the partitions are, every graph is run partition
// by partition in the order in which they are handed out, and gives what the operators give one by
// one.

#include "library_facts.hpp"
#include "select_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>

namespace maskwise::contract {
namespace {

using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::partition;
using policy = partition::policy;

bool plugin_expected() {
    const char* text = std::getenv("MASKWISE_EXPECT");
    return text != nullptr && std::string(text) == "plugin";
}

// A value of the graph: f32, or boolean as 0 and 1, row-major.
struct value {
    extents shape;
    std::vector<double> elements;
};

std::size_t offset_in(const extents& shape, const extents& of, std::size_t element) {
    std::size_t offset = 0, step = 1;
    for (std::size_t d = of.size(); d-- > 0;) {
        const auto extent = static_cast<std::size_t>(of[d]);
        const std::size_t index = element % extent;
        element /= extent;
        const std::size_t missing = of.size() - shape.size();
        if (d < missing || shape[d - missing] == 1) continue;
        offset += index * step;
        step *= static_cast<std::size_t>(shape[d - missing]);
    }
    return offset;
}

struct node {
    std::size_t id;
    op::kind kind;
    std::vector<std::size_t> inputs;
    std::size_t output;
};

constexpr auto strided = logical_tensor::layout_type::strided;

// A graph of f32 tensors and masks, whose shapes are given.
class client_graph {
public:
    client_graph(std::map<std::size_t, extents> shapes, std::set<std::size_t> masks,
                 std::vector<node> nodes)
        : shapes_(std::move(shapes)), masks_(std::move(masks)), nodes_(std::move(nodes)) {}

    logical_tensor describe(std::size_t id) const {
        return {id, masks_.contains(id) ? tensor_type::boolean : tensor_type::f32, shapes_.at(id),
                strided};
    }

    std::vector<partition> partitions(policy which = policy::fusion) const {
        dnnl::graph::graph graph(dnnl::engine::kind::cpu);
        for (const node& each : nodes_) {
            op made(each.id, each.kind, "op" + std::to_string(each.id));
            for (const std::size_t id : each.inputs) made.add_input(describe(id));
            made.add_output(describe(each.output));
            graph.add_op(made);
        }
        graph.finalize();
        return graph.get_partitions(which);
    }

    // Runs the partitions as they come and compares every tensor that leaves one.
    void check(unsigned seed, policy which = policy::fusion) const {
        std::map<std::size_t, value> values = random_inputs(seed);
        std::map<std::size_t, std::vector<std::uint8_t>> memory;
        for (const auto& [id, given] : values) memory[id] = bytes_of(id, given);
        for (const node& each : nodes_) values[each.output] = evaluate(each, values);
        for (const partition& each : partitions(which)) {
            ASSERT_TRUE(each.is_supported());
            run(each, memory);
            for (const auto& port : each.get_output_ports())
                compare(port.get_id(), values.at(port.get_id()), memory.at(port.get_id()));
        }
        EXPECT_TRUE(memory.contains(nodes_.back().output));
    }

private:
    std::map<std::size_t, value> random_inputs(unsigned seed) const {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal(0.0F, 1.5F);
        std::set<std::size_t> made;
        for (const node& each : nodes_) made.insert(each.output);
        std::map<std::size_t, value> inputs;
        for (const auto& [id, shape] : shapes_) {
            if (made.contains(id)) continue;
            value& input = inputs[id];
            input.shape = shape;
            for (std::size_t i = 0; i < element_count(shape); ++i)
                input.elements.push_back(masks_.contains(id) ? static_cast<double>(random() % 2)
                                                             : static_cast<double>(normal(random)));
        }
        return inputs;
    }

    std::vector<std::uint8_t> bytes_of(std::size_t id, const value& given) const {
        std::vector<std::uint8_t> bytes;
        for (const double element : given.elements) {
            if (masks_.contains(id)) {
                bytes.push_back(element != 0 ? 1 : 0);
                continue;
            }
            const auto number = static_cast<float>(element);
            const auto* first = reinterpret_cast<const std::uint8_t*>(&number);
            bytes.insert(bytes.end(), first, first + sizeof number);
        }
        return bytes;
    }

    value evaluate(const node& what, const std::map<std::size_t, value>& values) const {
        value result{shapes_.at(what.output), {}};
        for (std::size_t i = 0; i < element_count(result.shape); ++i) {
            const auto argument = [&](std::size_t k) {
                const value& from = values.at(what.inputs[k]);
                return from.elements[offset_in(from.shape, result.shape, i)];
            };
            result.elements.push_back(compute(what.kind, argument));
        }
        return result;
    }

    template <class Argument>
    static double compute(op::kind kind, const Argument& argument) {
        switch (kind) {
        case op::kind::Select:
            return argument(0) != 0 ? argument(1) : argument(2);
        case op::kind::Add:
            return argument(0) + argument(1);
        case op::kind::Multiply:
            return argument(0) * argument(1);
        case op::kind::Exp:
            return std::exp(argument(0));
        case op::kind::Tanh:
            return std::tanh(argument(0));
        case op::kind::ReLU:
            return std::max(argument(0), 0.0);
        default:
            throw std::logic_error("an operator that this test does not know");
        }
    }

    void run(const partition& each,
             std::map<std::size_t, std::vector<std::uint8_t>>& memory) const {
        const auto inputs = each.get_input_ports(), outputs = each.get_output_ports();
        auto compiled = each.compile(inputs, outputs, engine());
        std::vector<dnnl::graph::tensor> from, to;
        for (const auto& port : inputs) // in topological order all of them are there
            from.emplace_back(port, engine(), memory.at(port.get_id()).data());
        for (const auto& port : outputs) {
            auto& bytes = memory[port.get_id()];
            bytes.assign(compiled.query_logical_tensor(port.get_id()).get_mem_size(), 0xEE);
            to.emplace_back(port, engine(), bytes.data());
        }
        compiled.execute(stream(), from, to);
        stream().wait();
    }

    void compare(std::size_t id, const value& expected,
                 const std::vector<std::uint8_t>& actual) const {
        ASSERT_EQ(actual.size(), bytes_of(id, expected).size());
        for (std::size_t i = 0; i < expected.elements.size(); ++i) {
            float number = 0;
            std::memcpy(&number, actual.data() + i * sizeof number, sizeof number);
            ASSERT_NEAR(number, expected.elements[i], 2e-6 * (1 + std::fabs(expected.elements[i])))
                << "tensor " << id << ", element " << i;
        }
    }

    std::map<std::size_t, extents> shapes_;
    std::set<std::size_t> masks_;
    std::vector<node> nodes_;
};

using ids = std::vector<std::vector<std::size_t>>;

ids ops_of(const std::vector<partition>& partitions) {
    ids found;
    for (const partition& each : partitions) found.push_back(each.get_ops());
    return found;
}

std::vector<std::size_t> ids_of(const std::vector<logical_tensor>& ports) {
    std::vector<std::size_t> found;
    for (const auto& port : ports) found.push_back(port.get_id());
    return found;
}

const extents shape{3, 4, 33};

// exp(0) -> 4; 1 ? 4 : 2 -> 5; 5 + 3 -> 6
client_graph exp_select_add() {
    return {{{0, shape}, {1, {4, 33}}, {2, {1}}, {3, shape}, {4, shape}, {5, shape}, {6, shape}},
            {1},
            {{10, op::kind::Exp, {0}, 4},
             {11, op::kind::Select, {1, 4, 2}, 5},
             {12, op::kind::Add, {5, 3}, 6}}};
}

TEST(merge, makes_one_partition_with_all_ports) {
    const auto partitions = exp_select_add().partitions();
    EXPECT_EQ(plugin_is_loaded(), plugin_expected());
    if (!merges()) {
        EXPECT_EQ(partitions.size(), 3U);
        return;
    }
    ASSERT_EQ(ops_of(partitions), (ids{{10, 11, 12}}));
    EXPECT_EQ(ids_of(partitions[0].get_input_ports()), (std::vector<std::size_t>{0, 1, 2, 3}));
    EXPECT_EQ(ids_of(partitions[0].get_output_ports()), (std::vector<std::size_t>{6}));
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
    const client_graph graph({{0, shape},
                              {1, shape},
                              {2, shape},
                              {3, shape},
                              {4, shape},
                              {5, shape},
                              {6, shape},
                              {7, shape},
                              {8, shape}},
                             {1},
                             {{10, op::kind::Exp, {0}, 3},
                              {11, op::kind::Select, {1, 3, 2}, 4},
                              {12, op::kind::Tanh, {0}, 5},
                              {13, op::kind::Multiply, {5, 5}, 6}, // keeps 12 out: used twice
                              {14, op::kind::Add, {4, 5}, 7},
                              {15, op::kind::ReLU, {6}, 8}});
    graph.check(3);
}

TEST(merge, leaves_values_that_are_used_elsewhere) {
    const client_graph graph(
        {{0, shape}, {1, shape}, {2, shape}, {3, shape}, {4, shape}, {5, shape}}, {1},
        {{10, op::kind::Exp, {0}, 3},
         {11, op::kind::Select, {1, 3, 2}, 4},
         {12, op::kind::Tanh, {3}, 5}});
    EXPECT_EQ(graph.partitions().size(), 3U);
}

TEST(merge, leaves_what_is_broadcast_in_between) {
    const extents row{33};
    const client_graph graph({{0, row}, {1, shape}, {2, shape}, {3, row}, {4, shape}}, {1},
                             {{10, op::kind::Exp, {0}, 3}, {11, op::kind::Select, {1, 3, 2}, 4}});
    EXPECT_EQ(graph.partitions().size(), 2U);
}

// Chains of random operators around Selects, operands broadcast in any way.
TEST(merge, agrees_on_random_graphs) {
    if (!knows_select() && !plugin_expected())
        GTEST_SKIP() << "this oneDNN does not support Select";
    std::mt19937 random(5);
    constexpr op::kind kinds[] = {op::kind::Select, op::kind::Add,  op::kind::Multiply,
                                  op::kind::Exp,    op::kind::Tanh, op::kind::ReLU};
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
            op::kind kind = kinds[random() % std::size(kinds)];
            if (kind == op::kind::Exp && i > 0) kind = op::kind::Tanh;
            std::vector<std::size_t> inputs{current};
            if (kind == op::kind::Add || kind == op::kind::Multiply)
                inputs.push_back(operand(false));
            if (kind == op::kind::Select) inputs = {operand(true), current, operand(false)};
            if (kind == op::kind::Select && random() % 2 == 0) std::swap(inputs[1], inputs[2]);
            shapes[next] = shape;
            nodes.push_back({100 + i, kind, inputs, next});
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
    const std::vector<logical_tensor> inputs{
        {0, tensor_type::f32, shape, across},
        {1, tensor_type::boolean, extents{4, 33}, extents{1, 4}},
        {2, tensor_type::f32, extents{1}, strided},
        {3, tensor_type::f32, shape, strided}};
    const logical_tensor output{6, tensor_type::f32, shape, gaps};
    const auto compiled = merged[0].compile(inputs, {output}, engine());
    EXPECT_TRUE(maskwise_owns(compiled));
    std::mt19937 random(9);
    std::vector<float> x(element_count(shape)), z(x.size()), y{0.25F}, dst(x.size() * 2, -7.0F);
    std::vector<std::uint8_t> cond(4 * 33);
    for (float& each : x) each = static_cast<float>(random() % 1000) / 500.0F;
    for (float& each : z) each = static_cast<float>(random() % 1000) / 500.0F;
    for (auto& each : cond) each = static_cast<std::uint8_t>(random() % 2);
    compiled.execute(stream(),
                     {{inputs[0], engine(), x.data()},
                      {inputs[1], engine(), cond.data()},
                      {inputs[2], engine(), y.data()},
                      {inputs[3], engine(), z.data()}},
                     {{output, engine(), dst.data()}});
    stream().wait();
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
    const auto compiled = merged[0].compile(inputs, merged[0].get_output_ports(), engine());
    const auto pairs = compiled.get_inplace_ports();
    ASSERT_EQ(pairs.size(), 1U);
    EXPECT_EQ(pairs[0], std::make_pair(std::size_t{0}, std::size_t{6}));
    std::vector<float> x(element_count(shape), 0.5F), y{0.25F}, z(x.size(), 2.0F);
    std::vector<std::uint8_t> cond(4 * 33);
    for (std::size_t i = 0; i < cond.size(); ++i) cond[i] = i % 3 == 0 ? 1 : 0;
    compiled.execute(stream(),
                     {{inputs[0], engine(), x.data()},
                      {inputs[1], engine(), cond.data()},
                      {inputs[2], engine(), y.data()},
                      {inputs[3], engine(), z.data()}},
                     {{merged[0].get_output_ports()[0], engine(), x.data()}});
    stream().wait();
    for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(x[i], (i % cond.size() % 3 == 0 ? std::exp(0.5F) : 0.25F) + 2.0F, 1e-5F) << i;
}

TEST(merge, refuses_wrong_shapes_with_a_status) {
    if (!merges()) GTEST_SKIP() << "three partitions without the plugin or AVX2";
    const auto merged = exp_select_add().partitions();
    auto inputs = merged[0].get_input_ports();
    inputs[3] = {3, tensor_type::f32, extents{3, 5, 33}, strided};
    try {
        merged[0].compile(inputs, merged[0].get_output_ports(), engine());
        FAIL() << "compiled";
    } catch (const dnnl::error& refused) {
        EXPECT_EQ(refused.status, dnnl_invalid_shape);
    }
}

} // namespace
} // namespace maskwise::contract
