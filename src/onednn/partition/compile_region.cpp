#include "onednn/partition/compile_region.hpp"

#include "base/environment.hpp"
#include "base/error.hpp"
#include "fusion/find_row_chain.hpp"
#include "graph/compile_checks.hpp"
#include "graph/infer_shapes.hpp"
#include "graph/op_set.hpp"
#include "graph/redescribe.hpp"
#include "onednn/partition/assembly.hpp"
#include "onednn/partition/gains.hpp"
#include "onednn/partition/onednn_part.hpp"
#include "onednn/partition/report.hpp"
#include "onednn/record/translate.hpp"
#include "plan/collapse.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
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

// The client's outputs, dst checked. Rows make an open dst dense.
std::vector<abi::logical_tensor> complete_outputs(const row_region& region,
                                                  const compile_call& call,
                                                  const tensor_list& inputs, tensor_list outputs) {
    const dims shape = infer_dst(region, inputs);
    const auto position = graph::position_of(outputs, region.ops.back().outputs[0], "dst");
    auto& dst = outputs[position];
    graph::require_fitting_dst(dst, shape);
    auto completed = copy_tensors(call.out_num, call.outputs);
    if (dst.layout != graph::layout_kind::strided) return completed;
    graph::complete_output(dst, shape, {});
    if (elements_overlap(graph::to_desc(dst))) // oneDNN divides by such a stride
        throw argument_error("dst with strides " + to_string(dst.strides_elems) +
                             " has elements that overlap");
    completed[position] = to_abi(dst, completed[position]);
    return completed;
}

// The statistics of a SoftMax, its second output, are the client's to describe.
std::shared_ptr<const op_record> record_with(const op_record& record, const graph::op& described) {
    auto copy = std::make_shared<op_record>(record);
    for (std::size_t i = 0; i < copy->inputs.size(); ++i)
        copy->inputs[i] = with_shape_of(described.inputs[i], copy->inputs[i]);
    copy->outputs[0] = with_shape_of(described.outputs[0], copy->outputs[0]);
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
            throw argument_error("tensor " + std::to_string(tensor.id) + ' ' +
                                 to_string(tensor.extents) + " is too large for oneDNN");
}

// Row-major and without gaps: the layout in which rows are run.
abi::logical_tensor dense(const abi::logical_tensor& tensor) {
    if (tensor.ndims < 1) throw argument_error("the rank of the scores is not known");
    const dims shape(std::span(tensor.dims, static_cast<std::size_t>(tensor.ndims)));
    if (*std::ranges::min_element(shape) < 0)
        throw argument_error("the shape of the scores is not known");
    return completed(tensor, shape);
}

// oneDNN's clients compare with its operators, so their roundings are the default.
attention_order wanted_order() {
    const auto wanted = read_environment("MASKWISE_ATTENTION_ORDER").value_or("operators");
    if (wanted == "operators") return attention_order::operators;
    if (wanted == "tiles") return attention_order::tiles;
    throw argument_error("MASKWISE_ATTENTION_ORDER is '" + std::string(wanted) +
                         "', expected 'operators' or 'tiles'");
}

// The region as a whole, tile by tile: no part of it is oneDNN's, and scores are never stored.
std::unique_ptr<executable> compile_attention(const row_region& region, const compile_call& call) {
    assembly made(partition_kind::attention, region, call);
    const auto block = made.add_block(*region.block, wanted_order(), {});
    const tile_plan& plan = *block->attention();
    if (std::min({plan.heads, plan.rows, plan.keys, plan.columns}) <= 0)
        throw argument_error("the attention is empty");
    const std::string reason = reason_against_attention(plan, region.settings);
    if (!reason.empty()) throw argument_error(reason);
    return made.finish();
}

// The operators before the block's rows, these rows, the operators after them: the outer two are
// oneDNN's, and a merged group has none. Each part decides on the layouts that it writes; the part
// before is asked for dense scores.
std::unique_ptr<executable> compile_rows(const row_region& region, const compile_call& call) {
    assembly made(partition_kind::composite, region, call);
    const auto& rows = region.block->rows;
    const auto parts = graph::divide(region.ops, rows.op_ids, rows.scores);
    if (made.find(rows.scores) == nullptr)
        add_onednn_part(made, records_of(region.records, parts.before), region.settings,
                        call.engine, dense(made.wanted(rows.scores)));
    std::string operators = ": operators";
    for (const std::size_t id : rows.op_ids) operators.append(" ").append(std::to_string(id));
    made.add_block({rows, {}}, {}, std::move(operators));
    add_onednn_part(made, records_of(region.records, parts.after), region.settings, call.engine);
    return made.finish();
}

std::unique_ptr<executable> compile_operators(const row_region& region, const compile_call& call) {
    assembly made(partition_kind::composite, region, call);
    add_onednn_part(made, region.records, region.settings, call.engine);
    return made.finish();
}

struct attempt {
    std::unique_ptr<executable> made;
    std::exception_ptr failure; // where nothing was made
};

// A verbose line tells how it went.
attempt try_compile(std::unique_ptr<executable> (*compile)(const row_region&, const compile_call&),
                    partition_kind kind, std::size_t partition, const row_region& region,
                    const compile_call& call) {
    try {
        auto made = compile(region, call);
        report_verdict("claim", partition, name_of(kind), made->describe());
        return {std::move(made), {}};
    } catch (const std::exception& failure) {
        report_verdict("refuse", partition, name_of(kind), failure.what());
        return {{}, std::current_exception()};
    }
}

// Rows where attention cannot be had.
attempt try_block(std::size_t partition, const row_region& region, const compile_call& call) {
    if (region.block->attention) {
        auto whole =
            try_compile(compile_attention, partition_kind::attention, partition, region, call);
        const std::string reason = whole.made ? "" : reason_against_rows(region);
        if (!reason.empty())
            report_verdict("refuse", partition, name_of(partition_kind::composite), reason);
        if (whole.made || !reason.empty()) return whole;
    }
    return try_compile(compile_rows, partition_kind::composite, partition, region, call);
}

} // namespace

std::unique_ptr<executable> compile_region(std::size_t partition, const row_region& region,
                                           const compile_call& call) {
    return try_block(partition, region, call).made;
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
    auto ops = graph::redescribe(recorded.ops, inputs);
    row_region region = ops ? region_with(recorded, std::move(*ops)) : recorded;
    attempt rows;
    if (region.block) rows = try_block(partition, region, completed_call);
    if (rows.made) return std::move(rows.made);
    region.block.reset();
    refuse_sizes_that_end_onednn(region, inputs);
    refuse_sizes_that_end_onednn(region, from_abi(pointers));
    try {
        return compile_operators(region, completed_call);
    } catch (const error&) {
        throw;
    } catch (const std::exception&) {
        if (!rows.failure) throw;
        std::rethrow_exception(rows.failure);
    }
}

} // namespace maskwise::onednn
