// The C ABI of oneDNN Graph: bytes become a graph of Selects and the calls of a client. Up to the
// partitions every status must be the one that oneDNN alone gives, and the partitions are oneDNN's,
// but for those that the policy allows to be merged; what Maskwise compiles must work or be refused
// as the rules of graph_abi/reference.cpp say, and dst must hold the reference's bytes.

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

// By position, since ids may repeat.
struct buffers {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<test::owned_tensor> owners;
    std::vector<const_dnnl_graph_tensor_t> tensors;
};

buffers bind(generator& random, const std::vector<logical_tensor>& list) {
    buffers bound;
    for (const auto& tensor : list) {
        const bool is_usual = tensor.ndims >= 0 && tensor.layout_type == 2;
        auto& bytes = bound.bytes.emplace_back((is_usual ? test::size_of(tensor) : 1) + 1);
        test::fill_random(random, bytes.data(), bytes.size());
        if (test::width_bytes(tensor) == 1) test::fill_mask(random, bytes.data(), bytes.size());
        bound.owners.push_back(test::tensor_at(tensor, bytes.data()));
        bound.tensors.push_back(bound.owners.back().get());
    }
    return bound;
}

// Memory that a small test has; descriptions that no client could have memory for are compiled
// only.
bool can_be_run(const compile_description& request, const logical_tensor& dst) {
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
    return small(dst) && std::all_of(request.inputs.begin(), request.inputs.end(), small);
}

std::size_t position(const std::vector<logical_tensor>& list, std::size_t id) {
    return static_cast<std::size_t>(find(list, id) - list.data());
}

// What one partition computes: a Select, whose dst may go through a ReLU that was merged with it.
struct claimed {
    op_description select; // its output is the partition's
    bool has_relu = false;
};

template <typename Change>
void change_words(std::vector<std::byte>& bytes, std::int64_t width, Change&& change) {
    for (std::size_t offset = 0; offset + static_cast<std::size_t>(width) <= bytes.size();
         offset += static_cast<std::size_t>(width)) {
        std::uint32_t word = 0;
        std::memcpy(&word, &bytes[offset], static_cast<std::size_t>(width));
        word = change(word, std::uint32_t{1} << (width * 8 - 1));
        std::memcpy(&bytes[offset], &word, static_cast<std::size_t>(width));
    }
}

// Finite numbers and no -0.0, so that the bits of a ReLU's result are known.
void make_ordinary(std::vector<std::byte>& bytes, std::int64_t width) {
    change_words(bytes, width, [](std::uint32_t word, std::uint32_t sign) {
        word &= ~(sign >> 1); // the exponent's highest bit
        return word == sign ? 0 : word;
    });
}

// ReLU of a selected value is the selected one of two ReLUs.
void apply_relu(std::vector<std::byte>& bytes, std::int64_t width) {
    change_words(bytes, width, [](std::uint32_t word, std::uint32_t sign) {
        return (word & sign) != 0 ? 0 : word;
    });
}

std::vector<std::byte> expected_bytes(const claimed& claim, const compile_description& request,
                                      buffers& in, std::vector<std::byte> dst,
                                      const logical_tensor& dst_tensor) {
    const std::int64_t width = test::width_bytes(dst_tensor);
    std::vector<std::byte> sources[3];
    test::view operands[3];
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t port = position(request.inputs, claim.select.inputs[i].id);
        if (claim.has_relu && i > 0) make_ordinary(in.bytes[port], width);
        sources[i] = in.bytes[port];
        if (claim.has_relu && i > 0) apply_relu(sources[i], width);
        operands[i] = test::view_of(request.inputs[port], sources[i].data(), i == 0 ? 1 : width);
    }
    test::select_reference(operands[0], operands[1], operands[2],
                           test::view_of(dst_tensor, dst.data(), width), width);
    return dst;
}

void run(generator& random, const claimed& claim, const compile_description& request,
         dnnl_graph_compiled_partition_t compiled) {
    buffers in = bind(random, request.inputs), out = bind(random, request.outputs);
    const std::size_t port = position(request.outputs, claim.select.outputs[0].id);
    const auto wanted = expected_bytes(claim, request, in, out.bytes[port], request.outputs[port]);
    const int status = with_plugin().compiled_partition_execute(
        compiled, test::cpu_stream(), in.tensors.size(), in.tensors.data(), out.tensors.size(),
        out.tensors.data());
    if (status != dnnl_success) fail("execute answers " + std::to_string(status));
    if (out.bytes[port] != wanted) fail("dst is wrong");
}

// Tells in the end how much was tried.
struct counter {
    long sequences = 0, graphs = 0, compiles = 0, executions = 0;

    ~counter() {
        std::fprintf(stderr,
                     "%ld sequences of calls, %ld graphs with partitions, %ld compiles, "
                     "%ld executions\n",
                     sequences, graphs, compiles, executions);
    }
} counted;

void check_compiled(generator& random, const claimed& claim, compile_description request,
                    dnnl_graph_compiled_partition_t compiled) {
    const op_description& select = claim.select;
    // By that id the input is meant.
    if (find(request.inputs, select.outputs[0].id) != nullptr) return;
    logical_tensor dst{};
    with_plugin().compiled_partition_query_logical_tensor(compiled, select.outputs[0].id, &dst);
    const auto extents = expected_extents(select, request);
    if (extents != std::vector<std::int64_t>(dst.dims, dst.dims + std::max(dst.ndims, 0)))
        fail("dst has another shape than expected\n" + to_string(select) + to_string(request) +
             to_string(compile_description{{}, {dst}}));
    if (!can_be_run(request, dst)) return;
    request.outputs[position(request.outputs, dst.id)] = dst;
    // Extra outputs have no memory that is meant.
    request.outputs.resize(position(request.outputs, dst.id) + 1);
    run(random, claim, request, compiled);
    ++counted.executions;
}

void compile(generator& random, const claimed& claim, dnnl_graph_partition_t partition) {
    const op_description& select = claim.select;
    const auto request = draw_compile(random, select);
    ++counted.compiles;
    const auto compiled = test::make_compiled(partition);
    const int status =
        test::compile_into(compiled.get(), partition, request.inputs, request.outputs);
    const std::string about = to_string(select) + to_string(request);
    const verdict expected = judge(select, request);
    if (expected == verdict::must_work && status != dnnl_success)
        fail("compile refuses with " + std::to_string(status) + " what must work\n" + about);
    if (expected == verdict::must_refuse && status == dnnl_success)
        fail("compile takes what it must refuse\n" + about);
    if (status == dnnl_success) check_compiled(random, claim, request, compiled.get());
}

// Ids may repeat: the first operator of an id is the one in the graph.
std::optional<claimed> find_claimed(const graph_description& graph, const partition_note& note) {
    const auto find_op = [&graph](std::size_t id) {
        return *std::find_if(graph.ops.begin(), graph.ops.end(),
                             [id](const auto& op) { return op.id == id; });
    };
    claimed claim{find_op(note.ops[0]), note.ops.size() == 2};
    if (note.ops.size() > 2 || !is_select(claim.select)) return std::nullopt;
    if (claim.has_relu) claim.select.outputs = find_op(note.ops[1]).outputs;
    return claim;
}

void compile_all(generator& random, const graph_description& graph, session& s) {
    for (std::size_t i = 0; i < s.partitions.size(); ++i) {
        const auto claim = find_claimed(graph, s.notes[i]);
        if (!claim) continue;
        if (!test::is_supported(s.partitions[i]))
            fail("a Select that the real library takes is not supported");
        for (auto times = draw(random, 1, 20); times > 0; --times)
            compile(random, *claim, s.partitions[i]);
    }
}

void check_graph(generator& random) {
    const auto description = draw_graph(random);
    ++counted.graphs;
    session plugin_side(with_plugin()), other(real());
    plugin_side.build(description);
    other.build(description);
    const std::string wrong = complain(plugin_side, other, description);
    if (!wrong.empty()) fail(wrong);
    other.destroy();
    compile_all(random, description, plugin_side);
    plugin_side.destroy();
}

// Partitions take oneDNN a hundred times longer than all other calls.
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
