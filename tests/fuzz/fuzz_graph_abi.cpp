// Fuzzes oneDNN Graph's C ABI: bytes become a graph of Selects and a client's calls. Partitions,
// and every status before compile, must equal those of oneDNN alone. graph_abi/reference.cpp
// decides whether compile must succeed. dst must be bit-identical to the reference.

#include "graph_abi/api.hpp"
#include "graph_abi/call_sequence.hpp"
#include "graph_abi/reference.hpp"
#include "graph_abi/session.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

namespace maskwise::fuzz {
namespace {

// Buffers by position, because ids may repeat.
struct buffers {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<test::owned_tensor> owners;
    std::vector<const_dnnl_graph_tensor_t> tensors;
};

buffers bind(generator& random, const std::vector<logical_tensor>& list) {
    buffers result;
    for (const auto& tensor : list) {
        const bool is_usual = tensor.ndims >= 0 && tensor.layout_type == 2;
        auto& bytes = result.bytes.emplace_back((is_usual ? test::size_of(tensor) : 1) + 1);
        test::fill_random(random, bytes.data(), bytes.size());
        if (test::width_bytes(tensor) == 1) test::fill_mask(random, bytes.data(), bytes.size());
        result.owners.push_back(test::tensor_at(tensor, bytes.data()));
        result.tensors.push_back(result.owners.back().get());
    }
    return result;
}

// Whether the test can allocate and fill the tensors. Other tensors are only compiled.
bool can_be_run(const compile_description& description, const logical_tensor& dst) {
    const auto small = [](const logical_tensor& tensor) {
        std::int64_t span = 1, count = 1;
        for (int i = 0; i < tensor.ndims; ++i) {
            if (tensor.dims[i] < 0 || tensor.dims[i] > 5000) return false;
            if (tensor.layout.strides[i] < 0 || tensor.layout.strides[i] > 5000) return false;
            span += std::max<std::int64_t>(tensor.dims[i] - 1, 0) * tensor.layout.strides[i];
            count *= tensor.dims[i];
        }
        return span < 1 << 20 && count < 1 << 20 && tensor.property != 3 &&
               tensor.layout_type == dnnl_graph_layout_type_strided;
    };
    return small(dst) && std::all_of(description.inputs.begin(), description.inputs.end(), small);
}

std::size_t position(const std::vector<logical_tensor>& list, std::size_t id) {
    return static_cast<std::size_t>(find(list, id) - list.data());
}

std::vector<std::byte> expected_bytes(const op_description& select,
                                      const compile_description& description, buffers& in,
                                      std::vector<std::byte> dst,
                                      const logical_tensor& dst_tensor) {
    const std::int64_t width = test::width_bytes(dst_tensor);
    test::view operands[3];
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t index = position(description.inputs, select.inputs[i].id);
        operands[i] =
            test::view_of(description.inputs[index], in.bytes[index].data(), i == 0 ? 1 : width);
    }
    test::select_reference(operands[0], operands[1], operands[2],
                           test::view_of(dst_tensor, dst.data(), width), width);
    return dst;
}

void run(generator& random, const op_description& select, const compile_description& description,
         dnnl_graph_compiled_partition_t compiled) {
    buffers in = bind(random, description.inputs), out = bind(random, description.outputs);
    const std::size_t index = position(description.outputs, select.outputs[0].id);
    const auto wanted =
        expected_bytes(select, description, in, out.bytes[index], description.outputs[index]);
    const int status = with_plugin().compiled_partition_execute(
        compiled, test::cpu_stream(), in.tensors.size(), in.tensors.data(), out.tensors.size(),
        out.tensors.data());
    if (status != dnnl_success) fail("execute returns " + std::to_string(status));
    if (out.bytes[index] != wanted) fail("dst is wrong");
}

struct counter {
    long sequences = 0, graphs = 0, compiles = 0, executions = 0;

    ~counter() {
        std::fprintf(stderr,
                     "%ld sequences of calls, %ld graphs with partitions, %ld compiles, "
                     "%ld executions\n",
                     sequences, graphs, compiles, executions);
    }
} counted;

void check_compiled(generator& random, const op_description& select,
                    compile_description description, dnnl_graph_compiled_partition_t compiled) {
    // If an input has dst's id, the query would describe that input.
    if (find(description.inputs, select.outputs[0].id) != nullptr) return;
    logical_tensor dst{};
    with_plugin().compiled_partition_query_logical_tensor(compiled, select.outputs[0].id, &dst);
    const auto extents = expected_extents(select, description);
    if (extents != std::vector<std::int64_t>(dst.dims, dst.dims + std::max(dst.ndims, 0)))
        fail("dst has another shape than expected\n" + to_string(select) + to_string(description) +
             to_string(compile_description{{}, {dst}}));
    if (!can_be_run(description, dst)) return;
    description.outputs[position(description.outputs, dst.id)] = dst;
    // Removes the outputs after dst, which need no memory.
    description.outputs.resize(position(description.outputs, dst.id) + 1);
    run(random, select, description, compiled);
    ++counted.executions;
}

void compile(generator& random, const op_description& select, dnnl_graph_partition_t partition) {
    const auto description = draw_compile(random, select);
    ++counted.compiles;
    const auto compiled = test::make_compiled(partition);
    const int status =
        test::compile_into(compiled.get(), partition, description.inputs, description.outputs);
    const std::string about = to_string(select) + to_string(description);
    const verdict expected = judge(select, description);
    if (expected == verdict::must_work && status != dnnl_success)
        fail("compile must succeed, but returns " + std::to_string(status) + '\n' + about);
    if (expected == verdict::must_refuse && status == dnnl_success)
        fail("compile accepts tensors that it must refuse\n" + about);
    if (status == dnnl_success) check_compiled(random, select, description, compiled.get());
}

// The graph keeps the first operator of a repeated id.
std::optional<op_description> find_select(const graph_description& graph,
                                          const partition_note& note) {
    if (note.ops.size() != 1) return std::nullopt;
    const auto op = std::find_if(graph.ops.begin(), graph.ops.end(),
                                 [&](const auto& each) { return each.id == note.ops[0]; });
    return is_select(*op) ? std::optional(*op) : std::nullopt;
}

void compile_all(generator& random, const graph_description& graph, session& s) {
    for (std::size_t i = 0; i < s.partitions.size(); ++i) {
        const auto select = find_select(graph, s.notes[i]);
        if (!select) continue;
        if (!test::is_supported(s.partitions[i]))
            fail("a Select that oneDNN accepts is not supported");
        for (auto times = draw(random, 1, 20); times > 0; --times)
            compile(random, *select, s.partitions[i]);
    }
}

void check_graph(generator& random) {
    const auto description = draw_graph(random);
    ++counted.graphs;
    session plugin(with_plugin()), other(real());
    plugin.build(description);
    other.build(description);
    const std::string wrong = complain(plugin, other, description);
    if (!wrong.empty()) fail(wrong);
    other.destroy();
    compile_all(random, description, plugin);
    plugin.destroy();
}

// One input in four gets partitions, which take oneDNN far longer than all other calls.
void check(generator& random) {
    if (test::one_in(random, 4)) return check_graph(random);
    ++counted.sequences;
    const std::string wrong = play_call_sequence(random);
    if (!wrong.empty()) fail(wrong);
}

} // namespace
} // namespace maskwise::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    maskwise::fuzz::generator random(std::span(data, size));
    maskwise::fuzz::check(random);
    return 0;
}
