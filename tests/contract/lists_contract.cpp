// A client's lists for compile and execute may contain inner tensors of a partition or unrelated
// tensors. Only the partition's ports count, as in oneDNN. Tested with every oneDNN version, with
// and without the plugin.

#include "cpp_client.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace maskwise::contract {
namespace {

// A tensor in a client's list, with separate memory.
struct entry {
    logical_tensor desc;
    std::vector<float> memory;
};

entry filled(const logical_tensor& desc, float first) {
    entry result{desc, std::vector<float>(desc.get_mem_size() / sizeof(float) + 1)};
    for (std::size_t i = 0; i < result.memory.size(); ++i)
        result.memory[i] = first + static_cast<float>(i % 7) * 0.25F;
    return result;
}

entry mask(std::size_t id, const extents& shape) {
    entry result{dense(id, shape, boolean), std::vector<float>(64)};
    for (std::size_t i = 0; i < 256; i += 3)
        reinterpret_cast<std::uint8_t*>(result.memory.data())[i] = 1;
    return result;
}

using list = std::vector<entry>;

// Compiles with the full lists. Executes without the last `left_out` inputs and the last
// `outputs_left_out` outputs.
void run(const partition& subgraph, list& inputs, list& outputs, std::size_t left_out = 0,
         std::size_t outputs_left_out = 0) {
    std::vector<logical_tensor> in, out;
    std::vector<bound> from, to;
    for (auto& [port, memory] : inputs) {
        in.push_back(port);
        from.push_back({port, memory.data()});
    }
    for (auto& [port, memory] : outputs) {
        out.push_back(port);
        to.push_back({port, memory.data()});
    }
    const auto compiled = compile(subgraph, in, out);
    const auto& desc = outputs[0].desc;
    EXPECT_EQ(compiled.query_logical_tensor(desc.get_id()).get_strides(), desc.get_strides());
    from.resize(from.size() - left_out);
    to.resize(to.size() - outputs_left_out);
    execute(compiled, from, to);
}

constexpr std::size_t select_result = 3, result = 4, further = 99;
const extents shape{4, 8};

// A graph and the memory of its ports. `is_one`: oneDNN or Maskwise makes the graph one partition.
struct graph_case {
    bool is_one;
    std::vector<partition> partitions;
    list inputs, outputs;
};

graph_case rows() {
    return {merges(),
            partitions_of(
                {make(10, kind::Select, {dense(1, shape, boolean), dense(0, shape), dense(2, {1})},
                      dense(select_result, shape)),
                 soft_max(11, dense(select_result, shape), dense(result, shape))}),
            {filled(dense(0, shape), 1), mask(1, shape), filled(dense(2, {1}), -50)},
            {filled(dense(result, shape), -7)}};
}

const extents q{1, 2, 8, 4}, k{1, 2, 4, 8}, scores{1, 2, 8, 8};
constexpr std::size_t product = 30, scaled = 31, weights = 32;

graph_case attention() {
    return {
        fuses_attention(),
        partitions_of(
            {make(8, kind::MatMul, {dense(20, q), dense(21, k)}, dense(product, scores)),
             make(9, kind::Divide, {dense(product, scores), dense(23, {1})}, dense(scaled, scores)),
             make(10, kind::Select,
                  {dense(1, {1, 1, 1, 8}, boolean), dense(scaled, scores), dense(2, {1})},
                  dense(select_result, scores)),
             soft_max(11, dense(select_result, scores), dense(weights, scores)),
             make(12, kind::MatMul, {dense(weights, scores), dense(22, q)}, dense(result, q))}),
        {filled(dense(20, q), 0), filled(dense(21, k), -1), filled(dense(22, q), 0.5F),
         filled(dense(23, {1}), 2), mask(1, {1, 1, 1, 8}), filled(dense(2, {1}), -50)},
        {filled(dense(result, q), -7)}};
}

class lists : public testing::TestWithParam<graph_case (*)()> {
protected:
    void SetUp() override {
        actual_ = GetParam()();
        ASSERT_EQ(actual_.partitions.size() == 1, actual_.is_one);
        if (!actual_.is_one) GTEST_SKIP() << "neither this oneDNN nor Maskwise makes one partition";
        wanted_ = actual_;
        run(wanted_.partitions[0], wanted_.inputs, wanted_.outputs);
    }
    void expect_result() const { EXPECT_EQ(actual_.outputs[0].memory, wanted_.outputs[0].memory); }

    graph_case actual_, wanted_;
};

TEST_P(lists, inner_tensors_are_not_read_from_the_inputs) {
    const bool is_attention = actual_.inputs.size() > 3;
    const extents& inner_shape = is_attention ? scores : shape;
    const extents strides = is_attention ? extents{128, 64, 1, 8} : extents{1, 4};
    for (const std::size_t id : {select_result, product, scaled, weights}) {
        actual_.inputs.push_back({{id, f32, inner_shape, strides}, std::vector<float>(128, 77.0F)});
        run(actual_.partitions[0], actual_.inputs, actual_.outputs);
        expect_result();
        EXPECT_EQ(actual_.inputs.back().memory, std::vector<float>(128, 77.0F));
    }
}

TEST_P(lists, a_result_in_the_input_list_is_not_the_output) {
    const auto reshaped = dense(actual_.outputs[0].desc.get_id(), {3});
    actual_.inputs.insert(actual_.inputs.begin(), {reshaped, std::vector<float>(128, 77.0F)});
    run(actual_.partitions[0], actual_.inputs, actual_.outputs);
    expect_result();
    EXPECT_EQ(actual_.inputs[0].memory, std::vector<float>(128, 77.0F));
}

TEST_P(lists, unused_tensors_may_be_left_out_at_execution) {
    actual_.inputs.push_back(filled(dense(further, shape), 77));
    actual_.outputs.push_back(filled(dense(further + 1, shape), 77));
    run(actual_.partitions[0], actual_.inputs, actual_.outputs, 1, 1);
    expect_result();
}

TEST_P(lists, used_tensors_must_be_present) {
    if (!plugin_expected()) GTEST_SKIP() << "oneDNN alone reads past the end of the list";
    for (const std::size_t left_out : {0U, 1U})
        EXPECT_EQ(status_of([&] {
                      run(actual_.partitions[0], actual_.inputs, actual_.outputs, left_out,
                          1 - left_out);
                  }),
                  dnnl_invalid_arguments);
    EXPECT_EQ(actual_.outputs[0].memory, filled(actual_.outputs[0].desc, -7).memory);
}

std::string name_of(const testing::TestParamInfo<graph_case (*)()>& which) {
    const char* const names[] = {"rows", "attention"};
    return names[which.index];
}

INSTANTIATE_TEST_SUITE_P(each, lists, testing::Values(rows, attention), name_of);

#if DNNL_VERSION_MINOR >= 13
op with_statistics(op node, const logical_tensor& statistics) {
    node.add_output(statistics);
    return node;
}

std::vector<partition> training() {
    const logical_tensor constant{0, f32, shape, layout::strided, property::constant};
    return partitions_of(
        {make(10, kind::Select, {dense(1, shape, boolean), constant, dense(2, {1})},
              dense(select_result, shape)),
         with_statistics(soft_max(11, dense(select_result, shape), dense(result, shape)),
                         dense(further, {4, 1}))});
}

TEST(statistics, of_constant_scores_are_not_constant) {
    for (const auto& each : training()) {
        auto outputs = each.get_output_ports();
        for (auto& output : outputs)
            output = {output.get_id(), f32, output.get_dims(), layout::any};
        const auto compiled = compile(each, each.get_input_ports(), outputs);
        for (const auto& output : outputs)
            EXPECT_NE(compiled.query_logical_tensor(output.get_id()).get_property_type(),
                      property::constant);
    }
}

TEST(statistics, of_another_shape_are_an_invalid_shape) {
    const auto each = training().back();
    auto outputs = each.get_output_ports();
    for (auto& output : outputs)
        if (output.get_id() == further) output = dense(further, {4, 2});
    EXPECT_EQ(status_of([&] { compile(each, each.get_input_ports(), outputs); }),
              dnnl_invalid_shape);
}
#endif

} // namespace
} // namespace maskwise::contract
