#include "onednn/partition/onednn_subgraph.hpp"

#include "base/error.hpp"
#include "exec/run_select.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/compile_call.hpp"
#include "onednn/partition/select_executable.hpp"
#include "onednn/record/replay_op.hpp"
#include "onednn/record/tensor_data.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>
#include <cstdint>
#include <future>
#include <span>
#include <string>

namespace maskwise::onednn {

abi::logical_tensor scratchpad_of(std::size_t bytes) {
    abi::logical_tensor scratchpad{};
    scratchpad.id = scratchpad_id;
    scratchpad.ndims = 1;
    scratchpad.dims[0] = static_cast<std::int64_t>(bytes);
    scratchpad.data_type = abi::type_u8;
    scratchpad.property = abi::property_variable;
    scratchpad.layout_type = abi::layout_strided;
    scratchpad.layout.strides[0] = 1;
    return scratchpad;
}

onednn_subgraph::onednn_subgraph(const op_list& ops, const graph_settings& settings,
                                 const tensor_map& given, const tensor_map& wanted,
                                 abi::engine engine) {
    try {
        build_graph(ops, settings);
        take_partitions(ops);
        tensor_map known = given;
        for (auto& step : steps_) compile_step(step, known, wanted, engine);
        for (const auto& [id, tensor] : wanted)
            if (!outputs_.contains(id))
                throw invalid_argument("tensor " + std::to_string(id) + " does not leave its part");
    } catch (...) {
        release();
        throw;
    }
}

onednn_subgraph::~onednn_subgraph() {
    release();
}

void onednn_subgraph::release() {
    for (auto& step : steps_) {
        call_real(&real_library::compiled_partition_destroy, step.compiled);
        call_real(&real_library::partition_destroy, step.partition);
    }
    call_real(&real_library::graph_destroy, graph_);
}

void onednn_subgraph::build_graph(const op_list& ops, const graph_settings& settings) {
    require_success(call_real(&real_library::graph_create_with_fpmath_mode, &graph_,
                              settings.engine_kind, settings.fpmath_mode),
                    "graph_create");
    if (settings.fpmath_applies_to_int)
        require_success(
            call_real(&real_library::graph_set_fpmath_mode, graph_, settings.fpmath_mode, 1),
            "set_fpmath_mode");
    for (const auto& op : ops) add_recorded(graph_, *op);
    require_success(call_real(&real_library::graph_finalize, graph_), "finalize");
}

namespace {

std::optional<graph::op> select_alone(abi::partition partition, const op_list& ops) {
    const auto ids = op_ids(partition);
    if (ids.size() != 1) return std::nullopt;
    const auto record = find_op(ops, ids[0]);
    if (!record || record->kind != abi::op_kind_select) return std::nullopt;
    graph::op select = translate(*record);
    std::string reason;
    return can_claim(select, reason) ? std::optional(std::move(select)) : std::nullopt;
}

} // namespace

void onednn_subgraph::take_partitions(const op_list& ops) {
    require_success(call_real(&real_library::graph_filter, graph_, abi::policy_fusion), "filter");
    std::vector<abi::partition> partitions(partition_count(graph_));
    steps_.resize(partitions.size()); // room first: no handle is lost
    if (!partitions.empty())
        require_success(call_real(&real_library::graph_get_partitions, graph_, partitions.size(),
                                  partitions.data()),
                        "get_partitions");
    for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].partition = partitions[i];
    for (auto& step : steps_) {
        step.select = select_alone(step.partition, ops);
        if (!step.select && !is_supported(step.partition))
            throw invalid_argument("oneDNN does not support a part alone");
    }
}

namespace {

using pointer_list = std::vector<const abi::logical_tensor*>;

// Where oneDNN throws, its cache of compiled partitions keeps an entry that points into the
// partition, and reads there when it makes room: so the partition stays for ever. Where
// oneDNN finds such an entry again it throws std::future_error and makes no other.
abi::status compile_or_keep(abi::partition& partition, abi::compiled_partition compiled,
                            pointer_list in, pointer_list out, abi::engine engine) {
    try {
        return call_real(&real_library::partition_compile, partition, compiled, in.size(),
                         in.data(), out.size(), out.data(), engine);
    } catch (const std::future_error&) {
        throw;
    } catch (...) {
        partition = nullptr;
        throw;
    }
}

// Handles of one step lie on the stack when it is executed.
constexpr std::size_t max_step_inputs = 64, max_step_outputs = 16;

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

} // namespace

// False if the step is not a single Select, or its types or layouts need oneDNN.
bool onednn_subgraph::compile_as_select(compiled_step& step,
                                        const std::vector<abi::logical_tensor>& inputs,
                                        std::vector<abi::logical_tensor>& outputs) {
    const auto is_strided = [](const abi::logical_tensor& input) {
        return input.layout_type == abi::layout_strided;
    };
    if (!step.select || !std::all_of(inputs.begin(), inputs.end(), is_strided)) return false;
    const auto in = from_abi(pointers_to(inputs)), out = from_abi(pointers_to(outputs));
    if (!types_fit_schema(*step.select, in, out)) return false;
    step.as_select = compile_select(*step.select, in, out);
    outputs[step.as_select->at.dst] =
        to_abi(step.as_select->outputs[step.as_select->at.dst], outputs[step.as_select->at.dst]);
    return true;
}

// Describes the tensor to oneDNN, or the copy of it that the step will make.
abi::logical_tensor onednn_subgraph::take_input(compiled_step& step,
                                                const abi::logical_tensor& tensor) {
    const auto usual = row_major_instead_of(tensor);
    step.inputs.push_back(tensor.id);
    if (!usual || lie_alike(from_abi(tensor), from_abi(*usual))) return usual.value_or(tensor);
    const auto from = to_desc(from_abi(tensor));
    const std::size_t copy = step.inputs.back() = first_copy_id - tensor.id;
    step.copies.push_back({tensor.id, copy, make_copy_plan(from, to_desc(from_abi(*usual)))});
    return intermediates_[copy] = *usual;
}

// Intermediates leave with whatever layout oneDNN likes best.
void onednn_subgraph::compile_step(compiled_step& step, tensor_map& known, const tensor_map& wanted,
                                   abi::engine engine) {
    std::vector<abi::logical_tensor> inputs, outputs;
    for (const auto& port : input_ports(step.partition)) {
        if (!known.contains(port.id))
            throw invalid_argument("tensor " + std::to_string(port.id) + " of a part is not known");
        inputs.push_back(take_input(step, known.at(port.id)));
    }
    for (auto port : output_ports(step.partition)) {
        port.layout_type = abi::layout_any;
        outputs.push_back(wanted.contains(port.id) ? wanted.at(port.id) : port);
        step.outputs.push_back(port.id);
    }
    if (inputs.size() > max_step_inputs || outputs.size() > max_step_outputs)
        throw invalid_argument("a part has " + std::to_string(inputs.size()) + " inputs and " +
                               std::to_string(outputs.size()) + " outputs, which are too many");
    if (!compile_as_select(step, inputs, outputs)) compile_by_onednn(step, inputs, outputs, engine);
    for (auto& output : outputs) {
        known[output.id] = output;
        (wanted.contains(output.id) ? outputs_ : intermediates_)[output.id] = output;
    }
}

void onednn_subgraph::compile_by_onednn(compiled_step& step,
                                        const std::vector<abi::logical_tensor>& inputs,
                                        std::vector<abi::logical_tensor>& outputs,
                                        abi::engine engine) {
    require_success(
        call_real(&real_library::compiled_partition_create, &step.compiled, step.partition),
        "compiled_partition_create");
    require_success(compile_or_keep(step.partition, step.compiled, pointers_to(inputs),
                                    pointers_to(outputs), engine),
                    "compile");
    for (auto& output : outputs)
        require_success(call_real(&real_library::compiled_partition_query_logical_tensor,
                                  abi::const_compiled_partition(step.compiled), output.id, &output),
                        "query");
    ask_for_scratch(step);
}

void onednn_subgraph::ask_for_scratch(const compiled_step& step) {
    if (real().compiled_partition_execute_v2 == nullptr) return;
    abi::logical_tensor scratchpad{};
    require_success(call_real(&real_library::compiled_partition_get_scratchpad_logical_tensor,
                              abi::const_compiled_partition(step.compiled), &scratchpad),
                    "get_scratchpad_logical_tensor");
    scratch_bytes_ = std::max(scratch_bytes_, static_cast<std::size_t>(scratchpad.dims[0]));
}

namespace {

using tensor_span = std::span<abi::const_tensor>;

// Before 3.13 only the library owns its scratchpad.
abi::status execute_by_onednn(abi::const_compiled_partition compiled, abi::stream stream,
                              tensor_span in, tensor_span out, abi::const_tensor scratchpad) {
    if (real().compiled_partition_execute_v2 == nullptr)
        return call_real(&real_library::compiled_partition_execute, compiled, stream, in.size(),
                         in.data(), out.size(), out.data());
    return call_real(&real_library::compiled_partition_execute_v2, compiled, stream, in.size(),
                     in.data(), out.size(), out.data(), scratchpad);
}

} // namespace

abi::status onednn_subgraph::execute_as_select(const compiled_step& step,
                                               const tensor_lookup& find) {
    const auto& at = step.as_select->at;
    const auto source = [&](std::size_t position) {
        return memory_of(find(step.inputs[position]));
    };
    return execute_select(*step.as_select, {source(at.cond), source(at.src_0), source(at.src_1),
                                            memory_of(find(step.outputs[at.dst]))});
}

abi::status onednn_subgraph::execute(abi::stream stream, const tensor_lookup& find) const {
    const abi::const_tensor scratchpad = scratch_bytes_ > 0 ? find(scratchpad_id) : nullptr;
    for (const auto& step : steps_) {
        // Steps depend on each other and share the scratchpad, and a stream may be out of order.
        if (&step != steps_.data() && real().is_sycl())
            call_real(&real_library::stream_wait, stream);
        abi::const_tensor inputs[max_step_inputs], outputs[max_step_outputs];
        std::size_t in = 0, out = 0;
        for (const auto& [from, to, plan] : step.copies)
            run_copy(*plan, memory_of(find(from)), memory_of(find(to)));
        for (const std::size_t id : step.inputs) inputs[in++] = find(id);
        for (const std::size_t id : step.outputs) outputs[out++] = find(id);
        const auto status = step.as_select ? execute_as_select(step, find)
                                           : execute_by_onednn(step.compiled, stream, {inputs, in},
                                                               {outputs, out}, scratchpad);
        if (status != abi::success) return status;
    }
    return abi::success;
}

} // namespace maskwise::onednn
