// A merged partition once the client has it: what it is asked, and its compilation.

#include "base/verbose.hpp"
#include "onednn/guard.hpp"
#include "onednn/merge.hpp"
#include "onednn/onednn_verbose.hpp"
#include "onednn/real_library.hpp"
#include "onednn/translate.hpp"

#include <chrono>
#include <span>
#include <string>

namespace maskwise::onednn {
namespace {

std::unique_ptr<compiled_record> build(const std::shared_ptr<const partition_record>& partition,
                                       const compile_call& call) {
    const auto inputs = from_abi(std::span(call.inputs, call.in_num));
    const auto outputs = from_abi(std::span(call.outputs, call.out_num));
    auto record = std::make_unique<compiled_record>();
    record->partition = partition;
    record->expression = std::make_shared<const graph::compiled_expression>(
        graph::compile_group(partition->merged->group, inputs, outputs));
    record->inputs = copy_tensors(call.in_num, call.inputs);
    record->outputs = copy_tensors(call.out_num, call.outputs);
    auto& dst = record->outputs[record->expression->dst_position];
    dst = to_abi(record->expression->outputs[record->expression->dst_position], dst);
    return record;
}

} // namespace

abi::status compile_merged(const std::shared_ptr<const partition_record>& partition,
                           const compile_call& call) {
    if (has_nulls(call) || !is_cpu_engine(call.engine)) return abi::invalid_arguments;
    const auto start = std::chrono::steady_clock::now();
    std::string reason;
    const auto status = guarded(reason, [&] {
        auto record = build(partition, call);
        report_compiled(*record, std::chrono::steady_clock::now() - start);
        tables().compiled.insert(call.compiled_partition, std::move(record));
    });
    if (status != abi::success) report_refusal(*partition, status, reason);
    return status;
}

} // namespace maskwise::onednn
