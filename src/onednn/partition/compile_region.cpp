#include "onednn/partition/compile_region.hpp"

#include "base/error.hpp"
#include "fusion/find_row_chain.hpp"
#include "graph/compile_checks.hpp"
#include "graph/infer_shapes.hpp"
#include "graph/op_set.hpp"
#include "graph/redescribe.hpp"
#include "onednn/partition/attention_executable.hpp"
#include "onednn/partition/composite.hpp"
#include "onednn/partition/gains.hpp"
#include "onednn/partition/report.hpp"
#include "onednn/record/translate.hpp"
#include "plan/collapse.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace maskwise::onednn {
namespace {

using tensor_list = std::vector<graph::logical_tensor>;

// Rejects inputs that can crash oneDNN. Layouts that rows cannot use are accepted: oneDNN then runs
// the operators one by one.
dims infer_dst(const row_region& region, const tensor_list& inputs) {
    graph::shape_map shapes;
    for (const auto& port : graph::outer_inputs(region.ops)) {
        const auto& given = inputs[graph::position_of(inputs, port, "an input")];
        graph::require_readable(given, "tensor " + std::to_string(port.id));
        graph::to_input_desc(given); // throws where strides are negative or reach too far
        shapes[port.id] = given.extents;
    }
    return graph::infer_result(region.ops, std::move(shapes));
}

// The tensors after which an open dst is laid out, where rows do not want theirs.
std::vector<const graph::logical_tensor*> models_of(const row_region& region,
                                                    const tensor_list& inputs) {
    std::vector<const graph::logical_tensor*> models;
    for (const auto& port : graph::outer_inputs(region.ops))
        if (port.type != data_type::boolean)
            models.push_back(&inputs[graph::position_of(inputs, port, "an input")]);
    return models;
}

// The client's outputs, dst checked. Where rows have a direction, theirs is dense.
std::vector<abi::logical_tensor> complete_outputs(const row_region& region,
                                                  const compile_call& call,
                                                  const tensor_list& inputs, tensor_list outputs) {
    const dims shape = infer_dst(region, inputs);
    const auto position = graph::position_of(outputs, region.ops.back().outputs[0], "dst");
    auto& dst = outputs[position];
    graph::require_fitting_dst(dst, shape);
    auto completed = copy_tensors(call.out_num, call.outputs);
    const bool is_open = dst.layout != graph::layout_kind::strided;
    const auto& rows = region.block->rows;
    if (is_open && works_along_rows(rows.steps, rows.soft_max)) return completed;
    graph::complete_output(dst, shape, models_of(region, inputs));
    if (elements_overlap(graph::to_desc(dst))) // oneDNN divides by such a stride
        throw invalid_argument("dst with strides " + to_string(dst.strides_elems) +
                               " has elements that overlap");
    completed[position] = to_abi(dst, completed[position]);
    return completed;
}

// The statistics of a SoftMax, its second output, are the client's to describe.
std::shared_ptr<const op_record> record_with(const op_record& record, const graph::op& described) {
    auto copy = std::make_shared<op_record>(record);
    for (std::size_t i = 0; i < copy->inputs.size(); ++i)
        copy->inputs[i] = with_description(described.inputs[i], copy->inputs[i]);
    copy->outputs[0] = with_description(described.outputs[0], copy->outputs[0]);
    return copy;
}

// The region as the client describes it now. It has no block where that is not the whole any more.
row_region region_with(const row_region& region, std::vector<graph::op>&& ops) {
    row_region now = region;
    for (std::size_t i = 0; i < ops.size(); ++i)
        now.records[i] = record_with(*region.records[i], ops[i]);
    now.ops = std::move(ops);
    auto chains = fusion::find_row_chains(now.ops, [](std::size_t) { return true; });
    const bool is_whole = chains.size() == 1 && chains[0].ops.size() == now.ops.size();
    now.block.reset();
    if (is_whole) now.block = fusion::block{std::move(chains[0].chain), {}};
    return now;
}

// Sizes that no machine has end the process inside oneDNN.
void refuse_sizes_that_end_onednn(const row_region& region, const tensor_list& given) {
    constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
    for (const auto& tensor : given)
        if ((graph::makes(region.ops, tensor.id) || graph::reads(region.ops, tensor.id)) &&
            tensor.shape_known() && tensor.layout == graph::layout_kind::strided &&
            span_bytes(graph::to_desc(tensor)) > most_bytes)
            throw invalid_argument("tensor " + std::to_string(tensor.id) + ' ' +
                                   to_string(tensor.extents) + " is too large for oneDNN");
}

template <class Form>
std::unique_ptr<executable> compile_as(const char* form, std::size_t partition,
                                       const row_region& region, const compile_call& call) {
    std::unique_ptr<executable> compiled;
    try {
        compiled = std::make_unique<Form>(region, call);
    } catch (const std::exception& failure) {
        report_verdict("refuse", partition, form, failure.what());
        throw;
    }
    report_verdict("claim", partition, form, compiled->describe());
    return compiled;
}

} // namespace

// Rows where attention cannot be had.
std::unique_ptr<executable> compile_region(std::size_t partition, const row_region& region,
                                           const compile_call& call) {
    if (region.block && region.block->attention) {
        try {
            return compile_as<attention_executable>("attention", partition, region, call);
        } catch (const error&) { // reported
        }
        if (const std::string reason = reason_against_rows(region); !reason.empty()) {
            report_verdict("refuse", partition, "composite", reason);
            throw invalid_argument(reason);
        }
    }
    return compile_as<composite>("composite", partition, region, call);
}

// The claim is visible, so nothing is left to oneDNN: dst is checked and completed here, and the
// chain is found again where the client describes its tensors otherwise than at add_op. Where
// oneDNN throws on the operators one by one, too, the first reason counts.
std::unique_ptr<executable> compile_merged_region(std::size_t partition, const row_region& recorded,
                                                  const compile_call& call) {
    const auto inputs = from_abi(std::span(call.inputs, call.in_num));
    const auto outputs = from_abi(std::span(call.outputs, call.out_num));
    const auto completed = complete_outputs(recorded, call, inputs, outputs);
    auto pointers = pointers_to(completed);
    compile_call completed_call = call;
    completed_call.outputs = pointers.data();
    auto ops = graph::redescribe(recorded.ops, inputs, from_abi(pointers));
    row_region region = ops ? region_with(recorded, std::move(*ops)) : recorded;
    try {
        return compile_region(partition, region, completed_call);
    } catch (const std::exception&) {
        const auto reason = std::current_exception();
        region.block.reset();
        refuse_sizes_that_end_onednn(region, inputs);
        refuse_sizes_that_end_onednn(region, from_abi(pointers));
        try {
            return std::make_unique<composite>(region, completed_call);
        } catch (const error&) {
            throw;
        } catch (const std::exception&) {
            std::rethrow_exception(reason);
        }
    }
}

} // namespace maskwise::onednn
