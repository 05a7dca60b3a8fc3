#include "onednn/compile.hpp"

#include "base/error.hpp"
#include "base/verbose.hpp"
#include "onednn/claim.hpp"
#include "onednn/dump.hpp"
#include "onednn/guard.hpp"
#include "onednn/onednn_verbose.hpp"
#include "onednn/real_library.hpp"
#include "onednn/translate.hpp"

#include <algorithm>
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
    if (record->select.src_0_may_be_dst)
        record->inplace = {record->inputs[at.src_0].id, record->outputs[at.dst].id};
    return record;
}

// The pair holds for whoever executes: where that may be the real library, only if it agrees.
bool real_agrees_with_inplace(const compile_call& call, const abi::inplace_pair& wanted) {
    std::size_t count = 0;
    const abi::inplace_pair* pairs = nullptr;
    call_real(&real_library::compiled_partition_get_inplace_ports,
              abi::const_compiled_partition(call.compiled_partition), &count, &pairs);
    return std::any_of(pairs, pairs + count, [&](const auto& pair) {
        return pair.input_id == wanted.input_id && pair.output_id == wanted.output_id;
    });
}

// For functions of a newer oneDNN, which Maskwise does not export: they find a whole compiled
// partition behind the handle, with dst laid out as Maskwise has answered.
abi::status compile_for_newer_functions(const compile_call& call, compiled_record& record) {
    auto outputs = pointers_to(record.outputs);
    compile_call resolved = call;
    resolved.outputs = outputs.data();
    const auto status = compile_with_real(resolved);
    if (status == abi::success && record.inplace &&
        !real_agrees_with_inplace(call, *record.inplace))
        record.inplace.reset();
    return status;
}

// Writes the file, as the client described the tensors. Not where it left dst open: oneDNN dies on
// a strided dst without strides. Nor with a host scalar: there it throws, and what its cache then
// keeps points into a partition that the client will destroy.
void compile_for_dump(const compile_call& call, const compiled_record& record) {
    const auto& given = *call.outputs[record.select.at.dst];
    const bool has_scalar =
        std::any_of(record.inputs.begin(), record.inputs.end(),
                    [](const auto& input) { return input.property == abi::property_host_scalar; });
    if (has_known_shape(given) && !has_scalar) guarded([&] { compile_with_real(call); });
}

// What the real library does at compile beside compiling.
abi::status compile_by_real_as_well(const compile_call& call, compiled_record& record) {
    if (real_is_newer_than_known()) return compile_for_newer_functions(call, record);
    if (subgraph_dump_wanted()) compile_for_dump(call, record);
    return abi::success;
}

abi::status compile_own(const std::shared_ptr<const partition_record>& partition,
                        const compile_call& call, bool& leave_to_real) {
    const auto start = clock::now();
    std::string reason;
    abi::status real_status = abi::success;
    const auto status = guarded(reason, [&] {
        const auto inputs = from_abi(std::span(call.inputs, call.in_num));
        const auto outputs = from_abi(std::span(call.outputs, call.out_num));
        leave_to_real = partition->real_supports &&
                        !graph::types_fit_schema(partition->select, inputs, outputs);
        if (leave_to_real) return;
        auto record = build(partition, call, inputs, outputs);
        real_status = compile_by_real_as_well(call, *record);
        if (real_status != abi::success) throw invalid_argument("oneDNN refuses it");
        report_compiled(*record, std::chrono::duration<double, std::milli>(clock::now() - start));
        tables().compiled.insert(call.compiled_partition, std::move(record));
    });
    const auto answer = real_status != abi::success ? real_status : status;
    if (answer != abi::success) report_refusal(*partition, answer, reason);
    return answer;
}

} // namespace

bool has_nulls(const compile_call& call) {
    return call.compiled_partition == nullptr || call.engine == nullptr ||
           (call.in_num > 0 && call.inputs == nullptr) ||
           (call.out_num > 0 && call.outputs == nullptr);
}

void report_refusal(const partition_record& partition, abi::status status,
                    const std::string& reason) {
    if (verbose_level() < 1) return;
    guarded([&] {
        print_verbose("refuse," + std::to_string(partition.id) + ',' + partition.select.name +
                      ",compile,status " + std::to_string(status) + ',' + reason);
    });
}

std::vector<abi::logical_tensor> copy_tensors(std::size_t count,
                                              const abi::logical_tensor** tensors) {
    std::vector<abi::logical_tensor> copies;
    copies.reserve(count);
    for (std::size_t i = 0; i < count; ++i) copies.push_back(*tensors[i]);
    return copies;
}

std::vector<const abi::logical_tensor*>
pointers_to(const std::vector<abi::logical_tensor>& tensors) {
    std::vector<const abi::logical_tensor*> pointers;
    pointers.reserve(tensors.size());
    for (const auto& tensor : tensors) pointers.push_back(&tensor);
    return pointers;
}

abi::status compile_claimed(const std::shared_ptr<const partition_record>& partition,
                            const compile_call& call) {
    if (has_nulls(call)) return abi::invalid_arguments;
    if (!is_cpu_engine(call.engine)) return abi::invalid_arguments;
    bool leave_to_real = false;
    const auto status = compile_own(partition, call, leave_to_real);
    if (!leave_to_real) return status;
    report_refusal(*partition, abi::success, "types outside the schema, left to oneDNN");
    return compile_by_real(call);
}

abi::status compile_by_real(const compile_call& call) {
    const auto status = compile_with_real(call);
    if (status == abi::success) tables().compiled.erase(call.compiled_partition);
    return status;
}

} // namespace maskwise::onednn
