#include "onednn/compile.hpp"

#include "base/verbose.hpp"
#include "onednn/claim.hpp"
#include "onednn/guard.hpp"
#include "onednn/onednn_verbose.hpp"
#include "onednn/real_library.hpp"
#include "onednn/translate.hpp"

#include <chrono>
#include <span>
#include <string>

namespace maskwise::onednn {
namespace {

using clock = std::chrono::steady_clock;

abi::status compile_with_real(const compile_call& call) {
    return call_real(&real_library::partition_compile, call.partition, call.compiled_partition,
                     call.in_num, call.inputs, call.out_num, call.outputs, call.engine);
}

void report_refusal(const partition_record& partition, abi::status status,
                    const std::string& reason) {
    if (verbose_level() >= 1)
        print_verbose("refuse," + std::to_string(partition.id) + ',' + partition.select.name +
                      ",compile,status " + std::to_string(status) + ',' + reason);
}

bool has_nulls(const compile_call& call) {
    return call.compiled_partition == nullptr || call.engine == nullptr ||
           (call.in_num > 0 && call.inputs == nullptr) ||
           (call.out_num > 0 && call.outputs == nullptr);
}

std::vector<abi::logical_tensor> copy_tensors(std::size_t count,
                                              const abi::logical_tensor** tensors) {
    std::vector<abi::logical_tensor> copies;
    copies.reserve(count);
    for (std::size_t i = 0; i < count; ++i) copies.push_back(*tensors[i]);
    return copies;
}

std::unique_ptr<compiled_record> build(const std::shared_ptr<const partition_record>& partition,
                                       const compile_call& call,
                                       std::span<const graph::logical_tensor> inputs,
                                       std::span<const graph::logical_tensor> outputs) {
    auto record = std::make_unique<compiled_record>();
    record->partition = partition;
    record->select = graph::compile_select(partition->select, inputs, outputs);
    record->inputs = copy_tensors(call.in_num, call.inputs);
    record->outputs = copy_tensors(call.out_num, call.outputs);
    const auto& at = record->select.at;
    record->outputs[at.dst] = to_abi(record->select.outputs[at.dst], record->outputs[at.dst]);
    record->inplace = {record->inputs[at.src_0].id, record->outputs[at.dst].id};
    return record;
}

// A record that is replaced may still be read by an execution in flight: it is kept until the
// handle is destroyed.
void store(abi::compiled_partition handle, std::unique_ptr<compiled_record> record) {
    compiled_record* const stored = record.get();
    compiled_record* const previous = tables().compiled.exchange(handle, stored);
    record.release();
    stored->replaced = previous;
}

abi::status compile_own(const std::shared_ptr<const partition_record>& partition,
                        const compile_call& call, bool& leave_to_real) {
    const auto start = clock::now();
    std::string reason;
    const auto status = guarded(reason, [&] {
        const auto inputs = from_abi(std::span(call.inputs, call.in_num));
        const auto outputs = from_abi(std::span(call.outputs, call.out_num));
        leave_to_real = partition->real_supports &&
                        !graph::types_fit_schema(partition->select, inputs, outputs);
        if (leave_to_real) return;
        auto record = build(partition, call, inputs, outputs);
        report_compiled(*record, std::chrono::duration<double, std::milli>(clock::now() - start));
        store(call.compiled_partition, std::move(record));
    });
    if (status != abi::success) report_refusal(*partition, status, reason);
    return status;
}

} // namespace

abi::status compile_claimed(const std::shared_ptr<const partition_record>& partition,
                            const compile_call& call) {
    if (has_nulls(call)) return abi::invalid_arguments;
    if (!is_cpu_engine(call.engine)) return abi::invalid_arguments;
    if (real_is_newer_than_known()) {
        const auto status = compile_with_real(call);
        if (status != abi::success) return status;
    }
    bool leave_to_real = false;
    const auto status = compile_own(partition, call, leave_to_real);
    if (!leave_to_real) return status;
    report_refusal(*partition, abi::success, "types outside the schema, left to oneDNN");
    forget_compiled(call.compiled_partition);
    return compile_with_real(call);
}

void forget_compiled(abi::const_compiled_partition handle) {
    compiled_record* record = tables().compiled.remove(handle);
    while (record != nullptr) {
        compiled_record* const next = record->replaced;
        delete record;
        record = next;
    }
}

} // namespace maskwise::onednn
