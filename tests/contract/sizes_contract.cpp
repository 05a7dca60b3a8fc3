// Passes extents and strides near the 64-bit limits to compile. The plugin must refuse the sizes
// with a status, or access only the described memory. oneDNN alone would overflow and is not
// tested.

#include "cpp_client.hpp"
#include "support/huge_sizes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

namespace maskwise::contract {
namespace {

using namespace test;

struct counts {
    int refused = 0, accepted = 0, executed = 0;
};

// Not inlined, because the compiler would warn about a copy with a rank of -1.
[[gnu::noinline]] extents shape_of(const logical_tensor& tensor) {
    return tensor.get_dims();
}

std::size_t width_of(const logical_tensor& tensor) {
    return tensor.get_data_type() == boolean ? 1 : sizeof(float);
}

// Returns a tensor whose shape broadcasts to `to`. Passes one stride per extent, which oneDNN's
// header does not check.
logical_tensor random_tensor(chance& random, std::size_t id, const extents& to, tensor_type type) {
    extents shape(to.begin() + (to.empty() || !random.one_in(4) ? 0 : 1), to.end()), strides;
    for (std::int64_t& extent : shape) {
        if (random.one_in(5)) extent = 1;
        strides.push_back(random.stride(extent, 1));
    }
    return {id, type, shape, strides};
}

logical_tensor random_result(chance& random, std::size_t id, const extents& shape) {
    if (random.one_in(2)) return {id, f32, shape, layout::any};
    if (random.one_in(2)) return {id, f32, static_cast<int>(shape.size()), layout::any};
    return random_tensor(random, id, shape, f32);
}

std::optional<exact_memory> memory_of(const logical_tensor& tensor) {
    extents strides = tensor.get_strides();
    const auto width = static_cast<std::int64_t>(width_of(tensor));
    for (std::int64_t& stride : strides)
        if (__builtin_mul_overflow(stride, width, &stride)) return std::nullopt;
    return exact_memory::make(reach(shape_of(tensor), strides, width_of(tensor)));
}

void execute_if_small(const dnnl::graph::compiled_partition& compiled,
                      const std::vector<logical_tensor>& tensors, counts& seen) {
    if (elements_of(shape_of(tensors.back())) > static_cast<wide>(longest_memory)) return;
    std::vector<exact_memory> memories;
    std::vector<bound> operands;
    memories.reserve(tensors.size());
    for (const logical_tensor& tensor : tensors) {
        auto memory = memory_of(tensor);
        if (!memory) return;
        memories.push_back(std::move(*memory));
        operands.push_back({tensor, memories.back().first()});
    }
    execute(compiled, {operands.begin(), operands.end() - 1}, {operands.back()});
    ++seen.executed;
}

// Compiles the partition with random tensors, and executes it if these tensors are small. The
// Select reads tensors 1 to 3 and writes tensor 4. `result` is the id of the partition's only
// output.
void try_sizes(chance& random, const partition& subgraph, std::size_t result, counts& seen) {
    extents shape;
    for (int rank = random.below(5); rank > 0; --rank) shape.push_back(random.extent());
    std::vector<logical_tensor> inputs{random_tensor(random, 1, shape, boolean),
                                       random_tensor(random, 2, shape, f32),
                                       random_tensor(random, 3, shape, f32)};
    const auto wanted = random_result(random, result, shape);
    const auto status = status_of([&] {
        const auto compiled = compile(subgraph, inputs, {wanted});
        ++seen.accepted;
        EXPECT_TRUE(maskwise_owns(compiled));
        std::vector<logical_tensor> ports = inputs;
        ports.push_back(compiled.query_logical_tensor(result));
        for (const logical_tensor& tensor : ports) {
            const reach elements(shape_of(tensor), tensor.get_strides(), 1);
            EXPECT_TRUE(elements.is_addressable());
        }
        execute_if_small(compiled, ports, seen);
    });
    if (status == dnnl_success) return;
    ++seen.refused;
    EXPECT_TRUE(status == dnnl_invalid_shape || status == dnnl_invalid_arguments) << status;
}

void try_all(const partition& subgraph, std::size_t result) {
    chance random(7);
    counts seen;
    for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i)
        try_sizes(random, subgraph, result, seen);
    EXPECT_GT(seen.refused, 300);
    EXPECT_GT(seen.accepted, 100);
    EXPECT_GT(seen.executed, 50);
}

const extents recorded{4, 8};

op select() {
    return make(10, kind::Select,
                {dense(1, recorded, boolean), dense(2, recorded), dense(3, recorded)},
                dense(4, recorded));
}

TEST(sizes, of_a_select_never_overflow) {
    ASSERT_TRUE(plugin_is_loaded());
    const auto partitions = partitions_of({select()});
    ASSERT_EQ(partitions.size(), 1U);
    try_all(partitions[0], 4);
}

TEST(sizes, of_merged_operators_never_overflow) {
    if (!merges())
        GTEST_SKIP() << "oneDNN before 3.5 does not support Select, so the plugin merges nothing";
    const auto partitions =
        partitions_of({select(), soft_max(11, dense(4, recorded), dense(5, recorded))});
    ASSERT_EQ(partitions.size(), 1U);
    try_all(partitions[0], 5);
}

} // namespace
} // namespace maskwise::contract
