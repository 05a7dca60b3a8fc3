// Execution. A compiled partition that is not Maskwise's costs one probe. From 3.13 on the real
// execute calls execute_v2 by its exported name and so comes back here: the forwarders hold nothing
// while they forward.

#include "exec/run_expression.hpp"
#include "exec/run_select.hpp"
#include "onednn/composite.hpp"
#include "onednn/forward.hpp"
#include "onednn/guard.hpp"
#include "onednn/onednn_verbose.hpp"
#include "onednn/real_library.hpp"
#include "onednn/records.hpp"
#include "onednn/tensor_data.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace maskwise::onednn {
namespace {

// The arguments that every form of execute shares.
struct execute_call {
    abi::stream stream;
    std::size_t num_inputs;
    abi::const_tensor* inputs;
    std::size_t num_outputs;
    abi::const_tensor* outputs;
    abi::const_tensor scratchpad = nullptr;
};

bool covers(const execute_call& call, const graph::compiled_select::positions& at) {
    return call.stream != nullptr && call.inputs != nullptr && call.outputs != nullptr &&
           std::max({at.cond, at.src_0, at.src_1}) < call.num_inputs && at.dst < call.num_outputs;
}

bool covers(const execute_call& call, const graph::compiled_expression& expression) {
    const auto& at = expression.input_positions;
    return call.stream != nullptr && call.inputs != nullptr && call.outputs != nullptr &&
           *std::max_element(at.begin(), at.end()) < call.num_inputs &&
           expression.dst_position < call.num_outputs;
}

// A null handle of a tensor with several elements is an error, not a host scalar.
const void* source_of(const std::vector<graph::logical_tensor>& compiled, const execute_call& call,
                      std::size_t position, std::shared_ptr<const tensor_record>& kept) {
    if (element_count(compiled[position].extents) != 1) return memory_of(call.inputs[position]);
    return data_of(call.inputs[position], kept);
}

// Tensors are positional in the lists of compile. Their own descriptions are not looked at, as the
// real library does not: only their memory counts.
abi::status run(const compiled_record& record, const execute_call& call) {
    const auto& at = record.select.at;
    std::shared_ptr<const tensor_record> kept[3];
    const auto& compiled = record.select.inputs;
    const void* cond = source_of(compiled, call, at.cond, kept[0]);
    const void* src_0 = source_of(compiled, call, at.src_0, kept[1]);
    const void* src_1 = source_of(compiled, call, at.src_1, kept[2]);
    void* dst = memory_of(call.outputs[at.dst]);
    const bool is_complete =
        cond != nullptr && src_0 != nullptr && src_1 != nullptr && dst != nullptr;
    if (!is_complete) return record.select.is_empty ? abi::success : abi::invalid_arguments;
    // oneTBB throws where it has no memory for its tasks.
    return guarded([&] { run_select(*record.select.plan, cond, src_0, src_1, dst); });
}

abi::status run_merged(const graph::compiled_expression& expression, const execute_call& call) {
    std::array<std::shared_ptr<const tensor_record>, jit::max_inputs> kept;
    std::array<const void*, jit::max_inputs> inputs{};
    const std::size_t count = expression.input_positions.size();
    void* dst = memory_of(call.outputs[expression.dst_position]);
    bool is_complete = dst != nullptr;
    for (std::size_t i = 0; i < count; ++i) {
        inputs[i] = source_of(expression.inputs, call, expression.input_positions[i], kept[i]);
        is_complete = is_complete && inputs[i] != nullptr;
    }
    if (!is_complete) return expression.is_empty ? abi::success : abi::invalid_arguments;
    return guarded([&] { run_expression(*expression.plan, std::span(inputs).first(count), dst); });
}

abi::status run_any(const compiled_record& record, const execute_call& call) {
    if (record.expression) return run_merged(*record.expression, call);
    if (!record.whole) return run(record, call);
    void* const scratch = call.scratchpad != nullptr ? memory_of(call.scratchpad) : nullptr;
    return record.whole->execute(call.stream, call.num_inputs, call.inputs, call.num_outputs,
                                 call.outputs, scratch);
}

abi::status run_and_report(const compiled_record& record, const execute_call& call) {
    const auto start = std::chrono::steady_clock::now();
    const auto status = run_any(record, call);
    const bool is_given = record.whole && call.scratchpad != nullptr;
    guarded([&] {
        report_executed(record, is_given ? "user" : "library",
                        std::chrono::steady_clock::now() - start);
    });
    return status;
}

// On SYCL the work already queued may produce the inputs: it is waited for, and what `deps` names
// (a std::vector<sycl::event>, possibly of other queues) is waited for by the SYCL runtime itself.
abi::status wait_for_inputs(abi::stream stream, const void* deps) {
    if (!real().is_sycl()) return abi::success;
    if (deps != nullptr && real().sycl_wait_for_events != nullptr)
        real().sycl_wait_for_events(deps);
    return call_real(&real_library::stream_wait, stream);
}

// A sycl::event the client passes for the result stays as it is: a default one counts as complete,
// and the work is complete.
abi::status execute_own(const compiled_record& record, const execute_call& call,
                        const void* deps = nullptr) {
    const bool is_covered = record.whole || (record.expression ? covers(call, *record.expression)
                                                               : covers(call, record.select.at));
    if (!is_covered) return abi::invalid_arguments;
    if (call.stream == nullptr) return abi::invalid_arguments;
    const auto waited = wait_for_inputs(call.stream, deps);
    if (waited != abi::success) return waited;
    return exec_lines_wanted() ? run_and_report(record, call) : run_any(record, call);
}

// The SYCL functions exist in every oneDNN and answer `unimplemented` without SYCL.
const compiled_record* find_sycl(abi::const_compiled_partition handle) {
    return real().is_sycl() ? tables().compiled.find(handle) : nullptr;
}

} // namespace

abi::status dnnl_graph_compiled_partition_execute(abi::const_compiled_partition compiled_partition,
                                                  abi::stream stream, std::size_t num_inputs,
                                                  abi::const_tensor* inputs,
                                                  std::size_t num_outputs,
                                                  abi::const_tensor* outputs) {
    if (const auto* record = tables().compiled.find(compiled_partition))
        return execute_own(*record, {stream, num_inputs, inputs, num_outputs, outputs});
    return call_real(&real_library::compiled_partition_execute, compiled_partition, stream,
                     num_inputs, inputs, num_outputs, outputs);
}

// An older library has no scratchpads that a client could own: its first execute does the same.
abi::status
dnnl_graph_compiled_partition_execute_v2(abi::const_compiled_partition compiled_partition,
                                         abi::stream stream, std::size_t num_inputs,
                                         abi::const_tensor* inputs, std::size_t num_outputs,
                                         abi::const_tensor* outputs, abi::const_tensor scratchpad) {
    if (const auto* record = tables().compiled.find(compiled_partition))
        return execute_own(*record, {stream, num_inputs, inputs, num_outputs, outputs, scratchpad});
    if (real().compiled_partition_execute_v2 == nullptr)
        return call_real(&real_library::compiled_partition_execute, compiled_partition, stream,
                         num_inputs, inputs, num_outputs, outputs);
    return call_real(&real_library::compiled_partition_execute_v2, compiled_partition, stream,
                     num_inputs, inputs, num_outputs, outputs, scratchpad);
}

abi::status dnnl_graph_sycl_interop_compiled_partition_execute(
    abi::const_compiled_partition compiled_partition, abi::stream stream, std::size_t num_inputs,
    abi::const_tensor* inputs, std::size_t num_outputs, abi::const_tensor* outputs,
    const void* deps, void* sycl_event) {
    if (const auto* record = find_sycl(compiled_partition))
        return execute_own(*record, {stream, num_inputs, inputs, num_outputs, outputs}, deps);
    return call_real(&real_library::sycl_interop_compiled_partition_execute, compiled_partition,
                     stream, num_inputs, inputs, num_outputs, outputs, deps, sycl_event);
}

abi::status dnnl_graph_sycl_interop_compiled_partition_execute_v2(
    abi::const_compiled_partition compiled_partition, abi::stream stream, std::size_t num_inputs,
    abi::const_tensor* inputs, std::size_t num_outputs, abi::const_tensor* outputs,
    abi::const_tensor scratchpad, const void* deps, void* sycl_event) {
    if (const auto* record = find_sycl(compiled_partition))
        return execute_own(*record, {stream, num_inputs, inputs, num_outputs, outputs, scratchpad},
                           deps);
    if (real().sycl_interop_compiled_partition_execute_v2 == nullptr)
        return call_real(&real_library::sycl_interop_compiled_partition_execute, compiled_partition,
                         stream, num_inputs, inputs, num_outputs, outputs, deps, sycl_event);
    return call_real(&real_library::sycl_interop_compiled_partition_execute_v2, compiled_partition,
                     stream, num_inputs, inputs, num_outputs, outputs, scratchpad, deps,
                     sycl_event);
}

} // namespace maskwise::onednn
