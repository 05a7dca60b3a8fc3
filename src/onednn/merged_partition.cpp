// A merged partition once the client has it: what it is asked, and its compilation.

#include "base/error.hpp"
#include "base/verbose.hpp"
#include "graph/compile_checks.hpp"
#include "graph/infer_shapes.hpp"
#include "graph/output_layout.hpp"
#include "onednn/guard.hpp"
#include "onednn/merge.hpp"
#include "onednn/onednn_verbose.hpp"
#include "onednn/real_library.hpp"
#include "onednn/region.hpp"
#include "onednn/translate.hpp"

#include <chrono>
#include <span>
#include <string>

namespace maskwise::onednn {
namespace {

// What oneDNN might not survive is refused; other layouts are its to read where rows cannot.
dims infer_dst(const merged_record& merged, const compile_call& call) {
    const auto inputs = from_abi(std::span(call.inputs, call.in_num));
    graph::shape_map shapes;
    for (const auto& port : merged.inputs) {
        const std::string name = "tensor " + std::to_string(port.id);
        const auto position = graph::find_position(inputs, port.id);
        if (!position) throw invalid_argument(name + " is not in the list given to compile");
        const auto& given = inputs[*position];
        graph::require_readable(given, name);
        graph::to_input_desc(given); // throws where strides are negative or reach too far
        shapes[port.id] = given.extents;
    }
    return graph::infer_result(merged.ops, std::move(shapes));
}

// The client's outputs, dst checked; a strided dst of open shape becomes row-major.
std::vector<abi::logical_tensor> complete_outputs(const merged_record& merged,
                                                  const compile_call& call) {
    const dims shape = infer_dst(merged, call);
    auto outputs = from_abi(std::span(call.outputs, call.out_num));
    const auto position = graph::position_of(outputs, merged.ops.back().outputs[0], "dst");
    auto& dst = outputs[position];
    graph::require_fitting_dst(dst, shape);
    auto completed = copy_tensors(call.out_num, call.outputs);
    if (dst.layout != graph::layout_kind::strided) return completed;
    graph::complete_output(dst, shape, {});
    completed[position] = to_abi(dst, completed[position]);
    return completed;
}

std::unique_ptr<compiled_record>
build_rows(const std::shared_ptr<const partition_record>& partition, const compile_call& call) {
    const auto outputs = complete_outputs(*partition->merged, call);
    auto pointers = pointers_to(outputs);
    compile_call completed = call;
    completed.outputs = pointers.data();
    return build_merged_rows(partition, completed);
}

std::unique_ptr<compiled_record> build(const std::shared_ptr<const partition_record>& partition,
                                       const compile_call& call) {
    const auto inputs = from_abi(std::span(call.inputs, call.in_num));
    const auto outputs = from_abi(std::span(call.outputs, call.out_num));
    auto record = std::make_unique<compiled_record>();
    record->partition = partition;
    record->expression = std::make_shared<const graph::compiled_expression>(
        graph::compile_group(*partition->merged->group, inputs, outputs));
    record->inputs = copy_tensors(call.in_num, call.inputs);
    record->outputs = copy_tensors(call.out_num, call.outputs);
    const auto& expression = *record->expression;
    auto& dst = record->outputs[expression.dst_position];
    dst = to_abi(expression.outputs[expression.dst_position], dst);
    if (const auto position = graph::input_under_dst(expression))
        record->inplace = {record->inputs[*position].id, dst.id};
    return record;
}

} // namespace

abi::status compile_merged(const std::shared_ptr<const partition_record>& partition,
                           const compile_call& call) {
    if (has_nulls(call) || !is_cpu_engine(call.engine)) return abi::invalid_arguments;
    const auto start = std::chrono::steady_clock::now();
    std::string reason;
    const auto status = guarded(reason, [&] {
        auto record =
            partition->merged->group ? build(partition, call) : build_rows(partition, call);
        report_compiled(*record, std::chrono::steady_clock::now() - start);
        tables().compiled.insert(call.compiled_partition, std::move(record));
    });
    if (status != abi::success) report_refusal(*partition, status, reason);
    return status;
}

} // namespace maskwise::onednn
