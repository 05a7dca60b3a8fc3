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

// Returns the extents of dst. Refuses inputs that can crash oneDNN. Accepts layouts that the row
// kernels cannot read, because oneDNN can then run the operators one by one.
dims infer_dst(const row_region& region, const tensor_list& inputs) {
    graph::shape_map shapes;
    for (const auto& port : graph::outer_inputs(region.ops)) {
        const auto& input = inputs[graph::position_of(inputs, port, "an input")];
        graph::require_readable(input, "tensor " + std::to_string(port.id));
        graph::to_input_desc(input); // throws for negative strides or too large a span
        shapes[port.id] = input.extents;
    }
    return graph::infer_result(region.ops, std::move(shapes));
}

// Checks dst and completes the shape of a strided dst. A dst with layout `any` becomes dense later,
// when the row chain is compiled.
void complete_outputs(const row_region& region, compile_request& request) {
    const dims shape = infer_dst(region, request.inputs);
    const auto position = graph::position_of(request.outputs, region.ops.back().outputs[0], "dst");
    auto& dst = request.outputs[position];
    graph::require_fitting_dst(dst, shape);
    if (dst.layout != graph::layout_kind::strided) return;
    graph::complete_output(dst, shape, {});
    if (elements_overlap(graph::to_desc(dst))) // oneDNN would divide by a stride of 0
        throw argument_error("dst with strides " + to_string(dst.strides_elems) +
                             " may have elements that overlap");
}

// SoftMax's second output (statistics) keeps its description from add_op. Its description at
// compile is in the request.
std::shared_ptr<const op_record> record_with(const op_record& record, const graph::op& described) {
    auto copy = std::make_shared<op_record>(record);
    for (std::size_t i = 0; i < copy->inputs.size(); ++i)
        copy->inputs[i] = to_abi(described.inputs[i]);
    copy->outputs[0] = to_abi(described.outputs[0]);
    return copy;
}

// `block` is set only if one row chain still covers the region.
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

// Refuses strided tensors above 1 TiB, which would make oneDNN end the process.
void refuse_sizes_that_end_onednn(const row_region& region, const tensor_list& tensors) {
    constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
    for (const auto& tensor : tensors)
        if ((graph::makes(region.ops, tensor.id) || graph::reads(region.ops, tensor.id)) &&
            tensor.shape_known() && tensor.layout == graph::layout_kind::strided &&
            span_bytes(graph::to_desc(tensor)) > most_bytes)
            throw argument_error("tensor " + std::to_string(tensor.id) + ' ' +
                                 to_string(tensor.extents) + " is too large for oneDNN");
}

// Row kernels cannot read oneDNN's layouts, so scores with layout `any` become dense and row-major.
logical_tensor dense(const logical_tensor& scores) {
    if (!scores.rank_known || scores.extents.empty())
        throw argument_error("the rank of the scores is not known");
    if (std::ranges::min(scores.extents) < 0)
        throw argument_error("the shape of the scores is not known");
    return completed(scores, scores.extents);
}

// By default, attention rounds as oneDNN's operators do, because clients compare results with
// oneDNN's.
attention_order wanted_order() {
    const auto wanted = read_environment("MASKWISE_ATTENTION_ORDER").value_or("operators");
    if (wanted == "operators") return attention_order::operators;
    if (wanted == "tiles") return attention_order::tiles;
    throw argument_error("MASKWISE_ATTENTION_ORDER is '" + std::string(wanted) +
                         "', expected 'operators' or 'tiles'");
}

void require_gain(const tile_plan& plan, const graph_settings& settings) {
    if (std::min({plan.heads, plan.rows, plan.keys, plan.columns}) <= 0)
        throw argument_error("the attention is empty");
    const std::string reason = reason_against_attention(plan, settings);
    if (!reason.empty()) throw argument_error(reason);
}

std::unique_ptr<executable> compile_attention(const row_region& region,
                                              const compile_request& request) {
    assembly parts(partition_kind::attention, region, request);
    const auto block = parts.add_block(*region.block, wanted_order(), {});
    require_gain(*block->attention(), region.settings);
    return parts.finish();
}

std::unique_ptr<executable> compile_gradients(const row_region& region,
                                              const compile_request& request) {
    assembly parts(partition_kind::gradients, region, request);
    require_gain(parts.add_gradients(*region.gradients)->attention(), region.settings);
    return parts.finish();
}

// oneDNN runs the operators before and after the row chain. oneDNN chooses the layouts of its
// outputs, except that the scores must be dense.
std::unique_ptr<executable> compile_rows(const row_region& region, const compile_request& request) {
    assembly parts(partition_kind::composite, region, request);
    const auto& rows = region.block->rows;
    const auto division = graph::divide(region.ops, rows.op_ids, rows.scores);
    if (parts.find(rows.scores) == nullptr)
        add_onednn_part(parts, records_of(region.records, division.before), region.settings,
                        request.engine, dense(parts.wanted(rows.scores)));
    std::string operators = ": operators";
    for (const std::size_t id : rows.op_ids) operators.append(" ").append(std::to_string(id));
    parts.add_block({rows, {}}, {}, std::move(operators));
    add_onednn_part(parts, records_of(region.records, division.after), region.settings,
                    request.engine);
    return parts.finish();
}

std::unique_ptr<executable> compile_operators(const row_region& region,
                                              const compile_request& request) {
    assembly parts(partition_kind::composite, region, request);
    add_onednn_part(parts, region.records, region.settings, request.engine);
    return parts.finish();
}

struct attempt {
    std::unique_ptr<executable> compiled;
    std::exception_ptr failure; // if nothing was compiled
};

using compile_function = std::unique_ptr<executable>(const row_region&, const compile_request&);

attempt try_compile(compile_function& compile, partition_kind kind, std::size_t partition,
                    const row_region& region, const compile_request& request) {
    try {
        auto compiled = compile(region, request);
        report_verdict("claim", partition, name_of(kind), compiled->describe());
        return {std::move(compiled), {}};
    } catch (const std::exception& failure) {
        report_verdict("refuse", partition, name_of(kind), failure.what());
        return {{}, std::current_exception()};
    }
}

// Returns the first attempt that compiles, else the last. If attention does not compile, tries the
// row chain only if the row chain is faster than oneDNN.
attempt try_block(std::size_t partition, const row_region& region, const compile_request& request) {
    if (region.gradients) {
        auto whole =
            try_compile(compile_gradients, partition_kind::gradients, partition, region, request);
        if (whole.compiled || !region.block) return whole;
    }
    if (region.block->attention) {
        auto whole =
            try_compile(compile_attention, partition_kind::attention, partition, region, request);
        const std::string reason = whole.compiled ? "" : reason_against_rows(region);
        if (!reason.empty())
            report_verdict("refuse", partition, name_of(partition_kind::composite), reason);
        if (whole.compiled || !reason.empty()) return whole;
    }
    return try_compile(compile_rows, partition_kind::composite, partition, region, request);
}

} // namespace

std::unique_ptr<executable> compile_region(std::size_t partition, const row_region& region,
                                           const compile_request& request) {
    return try_block(partition, region, request).compiled;
}

// Searches for the row chain again if the shapes differ from the shapes at add_op. An `error` from
// compile_operators passes through. Other exceptions are oneDNN's. If the row chain failed, too,
// its failure replaces oneDNN's exception.
std::unique_ptr<executable> compile_merged_region(std::size_t partition, const row_region& recorded,
                                                  compile_request request) {
    complete_outputs(recorded, request);
    auto ops = graph::redescribe(recorded.ops, request.inputs);
    row_region region = ops ? region_with(recorded, std::move(*ops)) : recorded;
    attempt rows;
    if (region.block) rows = try_block(partition, region, request);
    if (rows.compiled) return std::move(rows.compiled);
    region.block.reset();
    refuse_sizes_that_end_onednn(region, request.inputs);
    refuse_sizes_that_end_onednn(region, request.outputs);
    try {
        return compile_operators(region, request);
    } catch (const error&) {
        throw;
    } catch (const std::exception&) {
        if (!rows.failure) throw;
        std::rethrow_exception(rows.failure);
    }
}

} // namespace maskwise::onednn
