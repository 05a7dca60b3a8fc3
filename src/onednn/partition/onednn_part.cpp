#include "onednn/partition/onednn_part.hpp"

#include "base/error.hpp"
#include "exec/run_select.hpp"
#include "graph/compiled_select.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/record/graph_record.hpp"
#include "onednn/record/tensor_data.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace maskwise::onednn {
namespace {

template <class Handle, abi::status (*destroy)(Handle)>
struct destroyer {
    void operator()(Handle handle) const { destroy(handle); }
};
template <class Handle, abi::status (*destroy)(Handle)>
using owned = std::unique_ptr<std::remove_pointer_t<Handle>, destroyer<Handle, destroy>>;
using owned_graph = owned<abi::graph, real_graph_destroy>;
using owned_partition = owned<abi::partition, real_partition_destroy>;
using owned_compiled = owned<abi::compiled_partition, real_compiled_partition_destroy>;

// Bounded because an execution stores the tensors' handles on the stack.
constexpr std::size_t max_segment_inputs = 64, max_segment_outputs = 16;

// Copies a tensor to another layout: an input before a segment, or an output after a segment.
struct copy {
    place src, dst;
    std::shared_ptr<const select_plan> plan;

    void run(const execution& tensors) const {
        run_copy(*plan, memory_of(tensors.tensor(src)), memory_of(tensors.tensor(dst)));
    }
};

class copy_segment final : public segment {
public:
    explicit copy_segment(copy one_copy) : copy_(std::move(one_copy)) {}
    abi::status run(const execution& tensors) const override {
        return guarded([&] { copy_.run(tensors); });
    }
    std::string describe() const override { return to_string(*copy_.plan); }

private:
    copy copy_;
};

class onednn_segment final : public segment {
public:
    abi::status run(const execution& tensors) const override;
    bool is_queued() const override { return real().is_sycl(); }

    owned_partition partition;
    owned_compiled compiled; // destroyed before `partition`
    std::vector<place> inputs, outputs;
    std::vector<copy> copies; // of inputs
    std::optional<place> scratchpad;
};

// oneDNN before 3.13 has no execute_v2 and allocates the scratchpad itself.
abi::status onednn_segment::run(const execution& tensors) const {
    abi::const_tensor in[max_segment_inputs], out[max_segment_outputs];
    const abi::status copied = guarded([&] {
        for (const copy& input : copies) input.run(tensors);
    });
    if (copied != abi::success) return copied;
    for (std::size_t i = 0; i < inputs.size(); ++i) in[i] = tensors.tensor(inputs[i]);
    for (std::size_t i = 0; i < outputs.size(); ++i) out[i] = tensors.tensor(outputs[i]);
    const abi::stream stream = tensors.call.stream;
    if (real().compiled_partition_execute_v2 == nullptr)
        return real_compiled_partition_execute(compiled.get(), stream, inputs.size(), in,
                                               outputs.size(), out);
    return real_compiled_partition_execute_v2(compiled.get(), stream, inputs.size(), in,
                                              outputs.size(), out,
                                              scratchpad ? tensors.tensor(*scratchpad) : nullptr);
}

owned_graph build_graph(const op_list& ops, const graph_settings& settings) {
    abi::graph handle = nullptr;
    require_success(
        real_graph_create_with_fpmath_mode(&handle, settings.engine_kind, settings.fpmath_mode),
        "graph_create");
    owned_graph graph(handle);
    if (settings.fpmath_applies_to_int)
        require_success(real_graph_set_fpmath_mode(handle, settings.fpmath_mode, 1),
                        "set_fpmath_mode");
    for (const auto& op : ops) add_recorded(handle, *op);
    require_success(real_graph_finalize(handle), "finalize");
    return graph;
}

std::vector<owned_partition> partitions_of(abi::graph graph) {
    require_success(real_graph_filter(graph, abi::policy_fusion), "filter");
    std::vector<abi::partition> handles(partition_count(graph));
    std::vector<owned_partition> partitions;
    partitions.reserve(handles.size()); // now: a later exception would leak handles
    if (!handles.empty())
        require_success(real_graph_get_partitions(graph, handles.size(), handles.data()),
                        "get_partitions");
    for (const abi::partition handle : handles) partitions.emplace_back(handle);
    return partitions;
}

std::optional<graph::op> select_alone(abi::partition partition, const op_list& ops) {
    const auto ids = op_ids(partition);
    if (ids.size() != 1) return std::nullopt;
    const auto record = find_op(ops, ids[0]);
    if (!record || record->kind != abi::op_kind_select) return std::nullopt;
    graph::op select = translate(*record);
    std::string reason;
    return can_claim(select, reason) ? std::optional(std::move(select)) : std::nullopt;
}

// Returns false if oneDNN must run the Select because of its types or layouts.
bool add_as_select(assembly& target, const graph::op& select, const tensor_list& inputs,
                   const tensor_list& outputs) {
    const auto is_strided = [](const logical_tensor& input) {
        return input.layout == graph::layout_kind::strided;
    };
    if (!std::ranges::all_of(inputs, is_strided)) return false;
    if (!types_fit_schema(select, inputs, outputs)) return false;
    const auto compiled = compile_select(select, inputs, outputs);
    const auto& ports = compiled.ports;
    const std::array sources{target.source_of(inputs[ports.cond].id),
                             target.source_of(inputs[ports.src_0].id),
                             target.source_of(inputs[ports.src_1].id)};
    const place dst = target.add(compiled.dst);
    target.add(std::make_unique<select_segment>(compiled, sources, dst));
    return true;
}

logical_tensor row_major_like(logical_tensor tensor) {
    tensor.strides_elems = dense_strides(tensor.extents, 1);
    return tensor;
}

bool has_known_strides(const logical_tensor& tensor) {
    return tensor.layout == graph::layout_kind::strided && tensor.shape_known();
}

// Row-major copies avoid two faults. oneDNN 3.7 to 3.13 infer the layout of a MatMul's input also
// from the strides of dimensions of extent 1. Results are wrong if such a stride differs from
// meant_strides. Passing meant_strides does not help, because oneDNN's caches treat both layouts as
// equal and may return code for the other layout. oneDNN 3.12 ignores gaps in an input that has
// fewer dimensions than the result.
bool must_be_row_major(const logical_tensor& input, int result_rank) {
    return has_known_strides(input) && (input.extents.rank() < result_rank ||
                                        input.strides_elems != graph::meant_strides(input));
}

// Returns the description that oneDNN compiles with: the input's, or that of its copy.
logical_tensor take_input(assembly& target, onednn_segment& segment, const logical_tensor& input,
                          int result_rank) {
    const place client = target.place_of(input.id);
    segment.inputs.push_back(client);
    if (!must_be_row_major(input, result_rank)) return input;
    auto dense = row_major_like(input);
    if (lie_alike(input, dense)) return dense;
    segment.inputs.back() = target.add_inner(dense);
    segment.copies.push_back(
        {client, segment.inputs.back(), make_copy_plan(to_desc(input), to_desc(dense))});
    return dense;
}

// oneDNN 3.12 writes outside of MatMul outputs that have gaps and are not row-major.
bool needs_copy(const logical_tensor& output) {
    if (!has_known_strides(output)) return false;
    const dims strides = graph::meant_strides(output);
    const bool is_row_major = std::ranges::is_sorted(strides, std::greater());
    return !is_row_major && strides != dense_strides(output.extents, 1, order_of(strides));
}

// `output` has the layout that oneDNN chose. The client or a later segment expects `requested`.
// Adds a copy to `results` if `requested` needs one.
void take_output(assembly& target, onednn_segment& segment, const logical_tensor& output,
                 const logical_tensor& requested, std::vector<copy>& results) {
    if (!needs_copy(requested)) {
        segment.outputs.push_back(target.add(output));
        return;
    }
    segment.outputs.push_back(target.add_inner(output));
    results.push_back({segment.outputs.back(), target.add(requested),
                       make_copy_plan(to_desc(output), to_desc(requested))});
}

// If oneDNN throws, its cache keeps an entry that points into the partition, and eviction reads the
// entry. So the partition must never be destroyed. If oneDNN finds such an entry again, oneDNN
// throws std::future_error and adds no entry.
void compile_or_leak(onednn_segment& segment, const compile_request& request) {
    try {
        compile_by_onednn(segment.partition.get(), segment.compiled.get(), request);
    } catch (const error&) {
        throw; // oneDNN returned a status
    } catch (const std::future_error&) {
        throw;
    } catch (...) {
        static_cast<void>(segment.partition.release());
        throw;
    }
}

std::size_t scratch_bytes_of(abi::const_compiled_partition compiled) {
    if (real().compiled_partition_execute_v2 == nullptr) return 0;
    abi::logical_tensor scratchpad{};
    require_success(real_compiled_partition_get_scratchpad_logical_tensor(compiled, &scratchpad),
                    "get_scratchpad_logical_tensor");
    return static_cast<std::size_t>(scratchpad.dims[0]);
}

void add_by_onednn(assembly& target, owned_partition partition, const compile_request& requested) {
    auto segment = std::make_unique<onednn_segment>();
    segment->partition = std::move(partition);
    compile_request request{{}, {}, requested.engine};
    int result_rank = 0;
    for (const auto& output : requested.outputs) {
        request.outputs.push_back(needs_copy(output) ? row_major_like(output) : output);
        result_rank = std::max(result_rank, output.extents.rank());
    }
    for (const auto& input : requested.inputs)
        request.inputs.push_back(take_input(target, *segment, input, result_rank));
    abi::compiled_partition compiled = nullptr;
    require_success(real_compiled_partition_create(&compiled, segment->partition.get()),
                    "compiled_partition_create");
    segment->compiled.reset(compiled);
    compile_or_leak(*segment, request);
    std::vector<copy> results;
    for (const auto& output : requested.outputs)
        take_output(target, *segment, query_onednn(compiled, output.id), output, results);
    if (const std::size_t bytes = scratch_bytes_of(compiled); bytes > 0)
        segment->scratchpad = target.scratchpad(bytes);
    target.add(std::move(segment));
    for (copy& result : results) target.add(std::make_unique<copy_segment>(std::move(result)));
}

// oneDNN chooses the layouts of values between segments, except for the one with in_layout's id.
void add_partition(assembly& target, owned_partition partition, const op_list& ops,
                   abi::engine engine, const std::optional<logical_tensor>& in_layout) {
    const auto select = select_alone(partition.get(), ops);
    if (!select && !is_supported(partition.get()))
        throw argument_error("oneDNN does not support a partition of the region's operators");
    compile_request requested{{}, {}, engine};
    for (const std::size_t id : input_ids(partition.get()))
        requested.inputs.push_back(target.known(id));
    for (const std::size_t id : output_ids(partition.get()))
        requested.outputs.push_back(in_layout && in_layout->id == id ? *in_layout
                                                                     : target.wanted(id));
    if (requested.inputs.size() > max_segment_inputs ||
        requested.outputs.size() > max_segment_outputs)
        throw argument_error("a oneDNN partition has " + std::to_string(requested.inputs.size()) +
                             " inputs and " + std::to_string(requested.outputs.size()) +
                             " outputs, which are too many");
    if (select && add_as_select(target, *select, requested.inputs, requested.outputs)) return;
    add_by_onednn(target, std::move(partition), requested);
}

// oneDNN supports host scalars only inside larger partitions, and would throw while compiling these
// operators.
void refuse_host_scalars(const assembly& target, const op_list& ops) {
    const auto is_host_scalar = [&](const abi::logical_tensor& input) {
        const auto* const now = target.find(input.id);
        return input.property == abi::property_host_scalar ||
               (now != nullptr && now->property == graph::property_kind::host_scalar);
    };
    for (const auto& op : ops)
        if (std::ranges::any_of(op->inputs, is_host_scalar))
            throw argument_error("operator " + std::to_string(op->id) + " takes a host scalar");
}

} // namespace

void add_onednn_part(assembly& target, const op_list& ops, const graph_settings& settings,
                     abi::engine engine, const std::optional<logical_tensor>& in_layout) {
    if (ops.empty()) return;
    refuse_host_scalars(target, ops);
    const auto graph = build_graph(ops, settings);
    for (auto& partition : partitions_of(graph.get()))
        add_partition(target, std::move(partition), ops, engine, in_layout);
}

} // namespace maskwise::onednn
