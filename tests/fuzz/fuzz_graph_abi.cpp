// The C ABI of oneDNN Graph: bytes become a graph of Selects and the calls of a client. Up to the
// partitions every status must be the one that oneDNN alone gives; what Maskwise compiles must work
// or be refused as the rules of graph_abi/reference.cpp say, and dst must hold the reference's
// bytes.

#include "graph_abi/api.hpp"
#include "graph_abi/reference.hpp"

#include "support/oracle.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace maskwise::fuzz {
namespace {

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
}

dnnl_engine_t engine() {
    static dnnl_engine_t made = nullptr;
    if (made == nullptr) dnnl_engine_create(&made, dnnl_cpu, 0);
    return made;
}

dnnl_stream_t stream() {
    static dnnl_stream_t made = nullptr;
    if (made == nullptr) dnnl_stream_create(&made, engine(), dnnl_stream_default_flags);
    return made;
}

// Everything one side has made, and what each call answered.
struct session {
    const api& calls;
    std::vector<int> answers;
    std::vector<dnnl_graph_op_t> ops;
    dnnl_graph_graph_t graph = nullptr;
    std::vector<dnnl_graph_partition_t> partitions;

    void note(int answer) { answers.push_back(answer); }
};

void build_op(session& s, const op_description& what) {
    dnnl_graph_op_t op = nullptr;
    s.note(s.calls.op_create(&op, what.id, what.kind, "op"));
    for (const auto& input : what.inputs) s.note(s.calls.op_add_input(op, &input));
    for (const auto& output : what.outputs) s.note(s.calls.op_add_output(op, &output));
    if (!what.auto_broadcast.empty())
        s.note(s.calls.op_set_attr_str(op, dnnl_graph_op_attr_auto_broadcast,
                                       what.auto_broadcast.c_str(), 1));
    const std::int64_t axis = 1;
    if (what.odd_attribute) s.note(s.calls.op_set_attr_s64(op, dnnl_graph_op_attr_axis, &axis, 1));
    s.ops.push_back(op);
}

void note_partition(session& s, dnnl_graph_partition_t partition) {
    std::size_t count = 0;
    s.note(s.calls.partition_get_op_num(partition, &count));
    std::vector<std::size_t> ids(count);
    s.note(s.calls.partition_get_ops(partition, count, ids.data()));
    for (const auto id : ids) s.note(static_cast<int>(id));
    s.note(s.calls.partition_get_input_ports_num(partition, &count));
    s.note(static_cast<int>(count));
    s.note(s.calls.partition_get_output_ports_num(partition, &count));
    s.note(static_cast<int>(count));
}

void take_partitions(session& s, const graph_description& what) {
    std::size_t count = 0;
    s.note(s.calls.graph_filter(s.graph, what.policy));
    s.note(s.calls.graph_get_partition_num(s.graph, &count));
    s.partitions.resize(count);
    if (count > 0) s.note(s.calls.graph_get_partitions(s.graph, count, s.partitions.data()));
    for (auto* partition : s.partitions) note_partition(s, partition);
}

void build_graph(session& s, const graph_description& what) {
    s.note(s.calls.graph_create(&s.graph, dnnl_cpu));
    for (const auto& op : what.ops) {
        build_op(s, op);
        s.note(s.calls.add_op(s.graph, s.ops.back()));
    }
    if (what.finalized) s.note(s.calls.graph_finalize(s.graph));
    take_partitions(s, what);
}

// On an error the real library leaves an object behind that may only be destroyed.
void build_single(session& s, const graph_description& what) {
    build_op(s, what.ops[0]);
    dnnl_graph_partition_t partition = nullptr;
    s.note(s.calls.partition_create_with_op(&partition, s.ops[0], dnnl_cpu));
    if (s.answers.back() == dnnl_success) {
        s.partitions.push_back(partition);
        note_partition(s, partition);
    } else if (partition != nullptr) {
        s.calls.partition_destroy(partition);
    }
}

void build(session& s, const graph_description& what) {
    if (what.through_single_op)
        build_single(s, what);
    else
        build_graph(s, what);
}

void destroy(session& s) {
    for (auto* partition : s.partitions) s.calls.partition_destroy(partition);
    s.calls.graph_destroy(s.graph);
    for (auto* op : s.ops) s.calls.op_destroy(op);
}

// ---- what Maskwise compiles ----

struct buffers {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<dnnl_graph_tensor_t> tensors;
};

test::view view_of(const logical_tensor& tensor, std::int64_t width) {
    test::view made{nullptr, {tensor.dims, tensor.dims + tensor.ndims}, {}};
    for (int i = 0; i < tensor.ndims; ++i)
        made.strides_bytes.push_back(tensor.layout.strides[i] * width);
    return made;
}

std::int64_t width_of(const logical_tensor& tensor) {
    switch (tensor.data_type) {
    case dnnl_f32:
    case dnnl_s32:
        return 4;
    case dnnl_f16:
    case dnnl_bf16:
        return 2;
    default:
        return 1;
    }
}

void bind(generator& random, const std::vector<logical_tensor>& list, buffers& to) {
    for (const auto& tensor : list) {
        const bool is_usual = tensor.ndims >= 0 && tensor.layout_type == 2;
        const auto size =
            is_usual ? test::span_bytes(view_of(tensor, width_of(tensor)), width_of(tensor)) : 1;
        auto& bytes = to.bytes.emplace_back(static_cast<std::size_t>(size) + 1);
        test::fill_random(random, bytes.data(), bytes.size());
        if (width_of(tensor) == 1) test::fill_mask(random, bytes.data(), bytes.size());
        dnnl_graph_tensor_t made = nullptr;
        with_plugin().tensor_create(&made, &tensor, engine(), bytes.data());
        to.tensors.push_back(made);
    }
}

// Memory that a small test has; descriptions that no client could have memory for are compiled
// only.
bool can_be_run(const compile_description& given, const logical_tensor& dst) {
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
    return small(dst) && std::all_of(given.inputs.begin(), given.inputs.end(), small);
}

std::size_t position(const std::vector<logical_tensor>& list, std::size_t id) {
    return static_cast<std::size_t>(find(list, id) - list.data());
}

void run(generator& random, const op_description& select, compile_description given,
         dnnl_graph_compiled_partition_t compiled) {
    buffers in, out;
    bind(random, given.inputs, in);
    bind(random, given.outputs, out);
    const std::size_t at = position(given.outputs, select.outputs[0].id);
    auto wanted = out.bytes[at];
    const std::int64_t width = width_of(given.outputs[at]);
    test::view operands[4];
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t p = position(given.inputs, select.inputs[i].id);
        operands[i] = view_of(given.inputs[p], i == 0 ? 1 : width);
        operands[i].data = in.bytes[p].data();
    }
    operands[3] = view_of(given.outputs[at], width);
    operands[3].data = wanted.data();
    test::select_reference(operands[0], operands[1], operands[2], operands[3], width);
    std::vector<const_dnnl_graph_tensor_t> ins(in.tensors.begin(), in.tensors.end());
    std::vector<const_dnnl_graph_tensor_t> outs(out.tensors.begin(), out.tensors.end());
    const int status = with_plugin().compiled_partition_execute(
        compiled, stream(), ins.size(), ins.data(), outs.size(), outs.data());
    if (status != dnnl_success) fail("execute answers " + std::to_string(status));
    if (out.bytes[at] != wanted) fail("dst is wrong");
    for (auto* list : {&in.tensors, &out.tensors})
        for (auto* tensor : *list) with_plugin().tensor_destroy(tensor);
}

void check_compiled(generator& random, const op_description& select, compile_description given,
                    dnnl_graph_compiled_partition_t compiled) {
    logical_tensor dst{};
    with_plugin().compiled_partition_query_logical_tensor(compiled, select.outputs[0].id, &dst);
    const auto extents = expected_extents(select, given);
    if (extents != std::vector<std::int64_t>(dst.dims, dst.dims + std::max(dst.ndims, 0)))
        fail("dst has another shape than expected");
    if (!can_be_run(given, dst)) return;
    given.outputs[position(given.outputs, dst.id)] = dst;
    // Extra outputs have no memory that is meant.
    given.outputs.resize(position(given.outputs, dst.id) + 1);
    run(random, select, given, compiled);
}

std::vector<const logical_tensor*> pointers(const std::vector<logical_tensor>& list) {
    std::vector<const logical_tensor*> result;
    for (const auto& tensor : list) result.push_back(&tensor);
    return result;
}

void compile(generator& random, const op_description& select, dnnl_graph_partition_t partition) {
    const auto given = draw_compile(random, select);
    dnnl_graph_compiled_partition_t compiled = nullptr;
    with_plugin().compiled_partition_create(&compiled, partition);
    auto in = pointers(given.inputs), out = pointers(given.outputs);
    const int status = with_plugin().partition_compile(partition, compiled, in.size(), in.data(),
                                                       out.size(), out.data(), engine());
    const verdict expected = judge(select, given);
    if (expected == verdict::must_work && status != dnnl_success)
        fail("compile refuses with " + std::to_string(status) + " what must work");
    if (expected == verdict::must_refuse && status == dnnl_success)
        fail("compile takes what it must refuse");
    if (status == dnnl_success) check_compiled(random, select, given, compiled);
    with_plugin().compiled_partition_destroy(compiled);
}

// Ids may repeat: the first operator of an id is the one in the graph.
const op_description* only_op(const graph_description& graph, dnnl_graph_partition_t partition) {
    std::size_t count = 0, id = 0;
    with_plugin().partition_get_op_num(partition, &count);
    if (count != 1) return nullptr;
    with_plugin().partition_get_ops(partition, 1, &id);
    const auto found = std::find_if(graph.ops.begin(), graph.ops.end(),
                                    [id](const auto& op) { return op.id == id; });
    return found->kind == dnnl_graph_op_select ? &*found : nullptr;
}

void compile_all(generator& random, const graph_description& graph, session& s) {
    for (auto* partition : s.partitions) {
        const auto* select = only_op(graph, partition);
        if (select == nullptr) continue;
        std::uint8_t supported = 0;
        s.calls.partition_is_supported(partition, &supported);
        if (supported == 0) fail("a Select that the real library takes is not supported");
        for (auto times = draw(random, 1, 20); times > 0; --times)
            compile(random, *select, partition);
    }
}

void check(generator& random) {
    const auto description = draw_graph(random);
    session own{with_plugin(), {}, {}, nullptr, {}}, other{real(), {}, {}, nullptr, {}};
    build(own, description);
    build(other, description);
    if (own.answers != other.answers) fail("the plugin answers otherwise than oneDNN alone");
    destroy(other);
    compile_all(random, description, own);
    destroy(own);
}

} // namespace
} // namespace maskwise::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    maskwise::fuzz::generator random(std::span(data, size));
    maskwise::fuzz::check(random);
    return 0;
}
