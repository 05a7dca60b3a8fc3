// Execution. For partitions compiled by oneDNN, the plugin adds one lookup. The real execute of
// oneDNN >= 3.13 calls execute_v2 by its exported name, which enters the plugin again. So
// forwarders must hold no lock.

#include "onednn/library/forward.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/partition/executable.hpp"
#include "onednn/partition/report.hpp"
#include "onednn/record/tables.hpp"

#include <chrono>

namespace maskwise::onednn {
namespace {

abi::status run_and_report(const executable& compiled, const execute_call& call) {
    const auto start = std::chrono::steady_clock::now();
    const auto status = compiled.execute(call);
    if (status != abi::success) return status;
    guarded([&] {
        report_executed(compiled, call.scratchpad != nullptr,
                        std::chrono::steady_clock::now() - start);
    });
    return status;
}

// On SYCL, queued work may still produce the inputs. Waits for the stream and for `deps`, a
// std::vector<sycl::event> whose events may belong to other queues.
abi::status wait_for_inputs(abi::stream stream, const void* deps) {
    if (!real().is_sycl()) return abi::success;
    if (deps != nullptr && real().sycl_wait_for_events != nullptr)
        real().sycl_wait_for_events(deps);
    return call_real(&real_library::stream_wait, stream);
}

// The work is complete on return, so the client's sycl::event keeps its default value, which counts
// as complete.
abi::status execute_compiled(const executable& compiled, const execute_call& call,
                             const void* deps = nullptr) {
    if (call.stream == nullptr) return abi::invalid_arguments;
    const auto waited = wait_for_inputs(call.stream, deps);
    if (waited != abi::success) return waited;
    return executions_are_reported() ? run_and_report(compiled, call) : compiled.execute(call);
}

// Null without the SYCL runtime. The real library's SYCL functions then return `unimplemented`.
const executable* find_sycl(abi::const_compiled_partition handle) {
    return real().is_sycl() ? tables().compiled.find(handle) : nullptr;
}

} // namespace

abi::status dnnl_graph_compiled_partition_execute(abi::const_compiled_partition compiled_partition,
                                                  abi::stream stream, std::size_t num_inputs,
                                                  abi::const_tensor* inputs,
                                                  std::size_t num_outputs,
                                                  abi::const_tensor* outputs) {
    if (const auto* compiled = tables().compiled.find(compiled_partition))
        return execute_compiled(*compiled, {stream, num_inputs, inputs, num_outputs, outputs});
    return real_compiled_partition_execute(compiled_partition, stream, num_inputs, inputs,
                                           num_outputs, outputs);
}

// oneDNN before 3.13 has neither execute_v2 nor client scratchpads, so the plugin calls execute.
abi::status
dnnl_graph_compiled_partition_execute_v2(abi::const_compiled_partition compiled_partition,
                                         abi::stream stream, std::size_t num_inputs,
                                         abi::const_tensor* inputs, std::size_t num_outputs,
                                         abi::const_tensor* outputs, abi::const_tensor scratchpad) {
    if (const auto* compiled = tables().compiled.find(compiled_partition))
        return execute_compiled(*compiled,
                                {stream, num_inputs, inputs, num_outputs, outputs, scratchpad});
    if (real().compiled_partition_execute_v2 == nullptr)
        return real_compiled_partition_execute(compiled_partition, stream, num_inputs, inputs,
                                               num_outputs, outputs);
    return real_compiled_partition_execute_v2(compiled_partition, stream, num_inputs, inputs,
                                              num_outputs, outputs, scratchpad);
}

abi::status dnnl_graph_sycl_interop_compiled_partition_execute(
    abi::const_compiled_partition compiled_partition, abi::stream stream, std::size_t num_inputs,
    abi::const_tensor* inputs, std::size_t num_outputs, abi::const_tensor* outputs,
    const void* deps, void* sycl_event) {
    if (const auto* compiled = find_sycl(compiled_partition))
        return execute_compiled(*compiled, {stream, num_inputs, inputs, num_outputs, outputs},
                                deps);
    return real_sycl_interop_compiled_partition_execute(
        compiled_partition, stream, num_inputs, inputs, num_outputs, outputs, deps, sycl_event);
}

abi::status dnnl_graph_sycl_interop_compiled_partition_execute_v2(
    abi::const_compiled_partition compiled_partition, abi::stream stream, std::size_t num_inputs,
    abi::const_tensor* inputs, std::size_t num_outputs, abi::const_tensor* outputs,
    abi::const_tensor scratchpad, const void* deps, void* sycl_event) {
    if (const auto* compiled = find_sycl(compiled_partition))
        return execute_compiled(
            *compiled, {stream, num_inputs, inputs, num_outputs, outputs, scratchpad}, deps);
    if (real().sycl_interop_compiled_partition_execute_v2 == nullptr)
        return real_sycl_interop_compiled_partition_execute(
            compiled_partition, stream, num_inputs, inputs, num_outputs, outputs, deps, sycl_event);
    return real_sycl_interop_compiled_partition_execute_v2(compiled_partition, stream, num_inputs,
                                                           inputs, num_outputs, outputs, scratchpad,
                                                           deps, sycl_event);
}

} // namespace maskwise::onednn
