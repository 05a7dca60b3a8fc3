#include "onednn/partition/onednn_part.hpp"

#include "base/error.hpp"
#include "exec/run_select.hpp"
#include "graph/compiled_select.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/record/graph_record.hpp"
#include "onednn/record/tensor_data.hpp"
#include "onednn/record/translate.hpp"

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

// Handles of a segment lie on the stack when it is executed.
constexpr std::size_t max_segment_inputs = 64, max_segment_outputs = 16;

// Of an input before the segment runs, or of an output behind it.
struct copy {
    place from, to;
    std::shared_ptr<const select_plan> plan;

    void run(const execution& of) const {
        run_copy(*plan, memory_of(of.tensor(from)), memory_of(of.tensor(to)));
    }
};

class copy_segment final : public segment {
public:
    explicit copy_segment(copy what) : what_(std::move(what)) {}
    abi::status run(const execution& of) const override {
        return guarded([&] { what_.run(of); });
    }
    std::string describe() const override { return to_string(*what_.plan); }

private:
    copy what_;
};

// A partition of the real library's.
class onednn_segment final : public segment {
public:
    abi::status run(const execution& of) const override;
    bool is_queued() const override { return real().is_sycl(); }

    owned_partition partition;
    owned_compiled compiled; // destroyed first
    std::vector<place> inputs, outputs;
    std::vector<copy> copies;
    std::optional<place> scratchpad;
};

// Before 3.13 only the library owns its scratchpad.
abi::status onednn_segment::run(const execution& of) const {
    abi::const_tensor in[max_segment_inputs], out[max_segment_outputs];
    const abi::status copied = guarded([&] {
        for (const copy& one : copies) one.run(of);
    });
    if (copied != abi::success) return copied;
    for (std::size_t i = 0; i < inputs.size(); ++i) in[i] = of.tensor(inputs[i]);
    for (std::size_t i = 0; i < outputs.size(); ++i) out[i] = of.tensor(outputs[i]);
    const abi::const_compiled_partition handle = compiled.get();
    if (real().compiled_partition_execute_v2 == nullptr)
        return real_compiled_partition_execute(handle, of.call.stream, inputs.size(), in,
                                               outputs.size(), out);
    return real_compiled_partition_execute_v2(handle, of.call.stream, inputs.size(), in,
                                              outputs.size(), out,
                                              scratchpad ? of.tensor(*scratchpad) : nullptr);
}

owned_graph build_graph(const op_list& ops, const graph_settings& settings) {
    abi::graph made = nullptr;
    require_success(
        real_graph_create_with_fpmath_mode(&made, settings.engine_kind, settings.fpmath_mode),
        "graph_create");
    owned_graph graph(made);
    if (settings.fpmath_applies_to_int)
        require_success(real_graph_set_fpmath_mode(made, settings.fpmath_mode, 1),
                        "set_fpmath_mode");
    for (const auto& op : ops) add_recorded(made, *op);
    require_success(real_graph_finalize(made), "finalize");
    return graph;
}

std::vector<owned_partition> partitions_of(abi::graph graph) {
    require_success(real_graph_filter(graph, abi::policy_fusion), "filter");
    std::vector<abi::partition> handles(partition_count(graph));
    std::vector<owned_partition> partitions;
    partitions.reserve(handles.size()); // room first: no handle is lost
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

// False if its types or layouts need oneDNN.
bool add_as_select(assembly& to, const graph::op& select,
                   const std::vector<abi::logical_tensor>& inputs,
                   const abi::logical_tensor& output) {
    const auto is_strided = [](const abi::logical_tensor& input) {
        return input.layout_type == abi::layout_strided;
    };
    if (!std::ranges::all_of(inputs, is_strided)) return false;
    const auto in = from_abi(pointers_to(inputs)), out = from_abi(pointers_to({output}));
    if (!types_fit_schema(select, in, out)) return false;
    const auto compiled = compile_select(select, in, out);
    const auto& at = compiled.at;
    const std::array sources{to.source_of(inputs[at.cond].id), to.source_of(inputs[at.src_0].id),
                             to.source_of(inputs[at.src_1].id)};
    const place dst = to.add(to_abi(compiled.dst, output));
    to.add(std::make_unique<select_segment>(compiled, sources, dst));
    return true;
}

// oneDNN 3.7 to 3.13 read the layout of a MatMul's input from the strides of extents of 1, too, and
// compute nonsense where one is odd. Usual strides do not help by themselves: to its caches they
// are the same, and they answer with what was made for the odd ones. Row-major, all are right.
std::optional<abi::logical_tensor> row_major_instead_of(const abi::logical_tensor& tensor) {
    auto usual = from_abi(tensor);
    if (usual.layout != graph::layout_kind::strided || !usual.shape_known() ||
        usual.strides_elems == graph::meant_strides(usual))
        return std::nullopt;
    usual.strides_elems = dense_strides(usual.extents, 1);
    return to_abi(usual, tensor);
}

// Describes the tensor to oneDNN, or the copy of it that the segment will make.
abi::logical_tensor take_input(assembly& to, onednn_segment& segment,
                               const abi::logical_tensor& tensor) {
    const auto usual = row_major_instead_of(tensor);
    const place at = to.place_of(tensor.id);
    segment.inputs.push_back(at);
    if (!usual || lie_alike(from_abi(tensor), from_abi(*usual))) return usual.value_or(tensor);
    segment.inputs.back() = to.add_inner(*usual);
    segment.copies.push_back(
        {at, segment.inputs.back(),
         make_copy_plan(to_desc(from_abi(tensor)), to_desc(from_abi(*usual)))});
    return *usual;
}

// oneDNN 3.12 writes outside of a MatMul's output that has gaps and is not row-major.
std::optional<abi::logical_tensor> dense_instead_of(const abi::logical_tensor& output) {
    auto usual = from_abi(output);
    if (usual.layout != graph::layout_kind::strided || !usual.shape_known()) return std::nullopt;
    const dims strides = graph::meant_strides(usual);
    const dims in_order = dense_strides(usual.extents, 1, order_of(strides));
    const bool is_row_major = std::ranges::is_sorted(strides, std::greater());
    if (is_row_major || strides == in_order) return std::nullopt;
    usual.strides_elems = dense_strides(usual.extents, 1);
    return to_abi(usual, output);
}

// The output as oneDNN has laid it out; asked for, perhaps, in a layout that it is to be copied to.
void take_output(assembly& to, onednn_segment& segment, const abi::logical_tensor& made,
                 const abi::logical_tensor& asked, std::vector<copy>& results) {
    if (!dense_instead_of(asked)) {
        segment.outputs.push_back(to.add(made));
        return;
    }
    segment.outputs.push_back(to.add_inner(made));
    results.push_back({segment.outputs.back(), to.add(asked),
                       make_copy_plan(to_desc(from_abi(made)), to_desc(from_abi(asked)))});
}

// Where oneDNN throws, its cache of compiled partitions keeps an entry that points into the
// partition, and reads there when it makes room: so the partition stays for ever. Where
// oneDNN finds such an entry again it throws std::future_error and makes no other.
void compile_or_keep(onednn_segment& segment, const std::vector<abi::logical_tensor>& inputs,
                     const std::vector<abi::logical_tensor>& outputs, abi::engine engine) {
    auto in = pointers_to(inputs), out = pointers_to(outputs);
    try {
        require_success(real_partition_compile(segment.partition.get(), segment.compiled.get(),
                                               in.size(), in.data(), out.size(), out.data(),
                                               engine),
                        "compile");
    } catch (const error&) {
        throw; // a status
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

void add_by_onednn(assembly& to, owned_partition partition,
                   const std::vector<abi::logical_tensor>& read,
                   const std::vector<abi::logical_tensor>& asked, abi::engine engine) {
    auto segment = std::make_unique<onednn_segment>();
    segment->partition = std::move(partition);
    std::vector<abi::logical_tensor> inputs;
    inputs.reserve(read.size());
    for (const auto& tensor : read) inputs.push_back(take_input(to, *segment, tensor));
    std::vector<abi::logical_tensor> outputs;
    outputs.reserve(asked.size());
    for (const auto& output : asked) outputs.push_back(dense_instead_of(output).value_or(output));
    abi::compiled_partition compiled = nullptr;
    require_success(real_compiled_partition_create(&compiled, segment->partition.get()),
                    "compiled_partition_create");
    segment->compiled.reset(compiled);
    compile_or_keep(*segment, inputs, outputs, engine);
    std::vector<copy> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::size_t id = outputs[i].id;
        require_success(real_compiled_partition_query_logical_tensor(compiled, id, &outputs[i]),
                        "query");
        take_output(to, *segment, outputs[i], asked[i], results);
    }
    if (const std::size_t bytes = scratch_bytes_of(compiled); bytes > 0)
        segment->scratchpad = to.scratchpad(bytes);
    to.add(std::move(segment));
    for (copy& result : results) to.add(std::make_unique<copy_segment>(std::move(result)));
}

// Values between segments have whatever layout oneDNN likes best.
void add_partition(assembly& to, owned_partition partition, const op_list& ops, abi::engine engine,
                   const std::optional<abi::logical_tensor>& in_layout) {
    const auto select = select_alone(partition.get(), ops);
    if (!select && !is_supported(partition.get()))
        throw argument_error("oneDNN does not support a part alone");
    std::vector<abi::logical_tensor> inputs, outputs;
    for (const auto& port : input_ports(partition.get())) inputs.push_back(to.known(port.id));
    for (const auto& port : output_ports(partition.get()))
        outputs.push_back(in_layout && in_layout->id == port.id ? *in_layout : to.wanted(port.id));
    if (inputs.size() > max_segment_inputs || outputs.size() > max_segment_outputs)
        throw argument_error("a part has " + std::to_string(inputs.size()) + " inputs and " +
                             std::to_string(outputs.size()) + " outputs, which are too many");
    if (select && add_as_select(to, *select, inputs, outputs[0])) return;
    add_by_onednn(to, std::move(partition), inputs, outputs, engine);
}

// oneDNN takes host scalars inside larger partitions only; on a part with one it throws.
void refuse_host_scalars(const assembly& to, const op_list& ops) {
    const auto is_host_scalar = [&](const abi::logical_tensor& input) {
        const auto* now = to.find(input.id);
        return input.property == abi::property_host_scalar ||
               (now != nullptr && now->property == abi::property_host_scalar);
    };
    for (const auto& op : ops)
        if (std::ranges::any_of(op->inputs, is_host_scalar))
            throw argument_error("operator " + std::to_string(op->id) +
                                 " of a part takes a host scalar");
}

} // namespace

void add_onednn_part(assembly& to, const op_list& ops, const graph_settings& settings,
                     abi::engine engine, const std::optional<abi::logical_tensor>& in_layout) {
    if (ops.empty()) return;
    refuse_host_scalars(to, ops);
    const auto graph = build_graph(ops, settings);
    for (auto& partition : partitions_of(graph.get()))
        add_partition(to, std::move(partition), ops, engine, in_layout);
}

} // namespace maskwise::onednn
